"""A client whose connections come and go at random, in a program that stands still.

Each message comes once and in order, or a gap that is true; no value is older than one shown; what is wanted comes in
the end, and nothing is left.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

from keycast import Gap, Keycast, KeycastError, Message, Position, Room, Value
from keycast.environment import LoopEnvironment
from world import WELCOME, FakeTimer

KEYS = ["a:0", "a:1", "a:2"]
ROOMS = ["room:0", "room:1"]

#: A gateway cuts a session that nothing comes from.
CUT_MS = 50_000

#: A connection is found dead in this time.
FOUND_MS = 45_000

#: An id is known as long as its message is there, and for so long.
REMEMBERED_MS = 300_000


def body_of(order: int) -> bytes:
    return json.dumps({"order": order}).encode()


def version_of(order: int) -> str:
    return urlsafe_b64encode(hashlib.sha256(body_of(order)).digest()[:16]).rstrip(b"=").decode()


class RoomLog:
    def __init__(self) -> None:
        self.epochs = 0
        self.seq = 0
        self.messages: list[dict[str, Any]] = []
        #: With those that are gone, each with its epoch.
        self.all: list[dict[str, Any]] = []
        self.remembered: dict[str, dict[str, Any]] = {}
        #: Places whose messages were trimmed, or are of a history before.
        self.gone: set[tuple[str, int]] = set()

    def trim(self, count: int) -> None:
        self.gone |= {(self.epoch, each["seq"]) for each in self.messages[:count]}
        self.messages = self.messages[count:]

    @property
    def epoch(self) -> str:
        return f"E{self.epochs}"

    @property
    def oldest(self) -> int:
        return int(self.messages[0]["seq"]) if self.messages else self.seq + 1


class World(LoopEnvironment):
    """The client's environment, and the gateways that it reaches."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = random.Random(seed)
        #: The client's monotonic clock, which may stand still while a computer sleeps, and that of all others.
        self.now_ms = 0.0
        self.world_ms = 1_700_000_000_000.0
        self.timers: list[FakeTimer] = []
        self.events: list[FakeTimer] = []
        self.reported: list[BaseException] = []
        self.mode = "open"
        self.values = dict.fromkeys(KEYS, 1)
        self.rooms = {key: RoomLog() for key in ROOMS}
        self.connections: list[Connection] = []
        self.heard_ms = 0.0

    def now(self) -> float:
        return self.now_ms

    def date(self) -> float:
        return self.world_ms

    def random(self) -> float:
        return self.chance.random()

    def later(self, ms: float, task: Callable[[], None]) -> FakeTimer:
        return FakeTimer(self.timers, self.now_ms + ms, task)

    def after(self, ms: float, task: Callable[[], None]) -> None:
        FakeTimer(self.events, self.world_ms + ms, task)

    def report(self, error: BaseException, message: str) -> None:
        self.reported.append(error)

    def dial(self, url: str, on_message: Callable[[Any], None], on_close: Callable[[int, str], None]) -> Connection:
        return Connection(self, on_message, on_close)

    def latency(self) -> int:
        return self.chance.choice([0, 1, 5, 30, 200])

    def change(self, key: str) -> None:
        self.values[key] += 1
        for connection in list(self.connections):
            self.after(self.latency(), partial(connection.changed, key))

    def keep(self, key: str, message_id: str, data: Any) -> dict[str, Any]:
        room = self.rooms[key]
        there = room.remembered.get(message_id)
        if there and (there in room.messages or self.world_ms - there["at"] < REMEMBERED_MS):
            return {**there, "duplicate": True}
        room.seq += 1
        message = {"seq": room.seq, "at": int(self.world_ms), "messageId": message_id, "data": data}
        room.messages.append(message)
        room.remembered[message_id] = message
        room.all.append({**message, "epoch": room.epoch})
        for connection in list(self.connections):
            if key in connection.followed:
                connection.say({"type": "message", "key": key, **message})
        return message

    def begin(self, key: str) -> None:
        """Another history."""
        room = self.rooms[key]
        room.trim(len(room.messages))
        room.epochs += 1
        room.seq = 0
        room.messages = []
        room.remembered = {}
        gap = {"type": "gap", "key": key, "epoch": room.epoch, "seq": 0, "oldest": 1, "reason": "epoch"}
        for connection in list(self.connections):
            if key in connection.followed:
                connection.say(gap)

    def cut(self, is_silent: bool) -> None:
        for connection in list(self.connections):
            connection.cut(is_silent)

    async def settle(self) -> None:
        for _ in range(6):
            await asyncio.sleep(0)

    async def pass_ms(self, ms: float) -> None:
        until_ms = self.world_ms + ms
        await self.settle()
        while True:
            timer = min(self.timers, key=lambda each: each.at_ms, default=None)
            event = min(self.events, key=lambda each: each.at_ms, default=None)
            timer_ms = self.world_ms + max(0.0, timer.at_ms - self.now_ms) if timer else float("inf")
            event_ms = event.at_ms if event else float("inf")
            at_ms = min(timer_ms, event_ms)
            if at_ms > until_ms:
                break
            self._advance(at_ms)
            due = timer if timer_ms <= event_ms else event
            assert due
            due.cancel()
            due.task()
            await self.settle()
        self._advance(until_ms)

    def _advance(self, to_ms: float) -> None:
        passed = max(0.0, to_ms - self.world_ms)
        self.world_ms += passed
        self.now_ms += passed

    async def sleep_ms(self, ms: float, is_monotonic: bool) -> None:
        """The program stands still; then all timers that were due run before a byte is read."""
        if ms > CUT_MS:
            for connection in list(self.connections):
                connection.cut(self.chance.random() < 0.5)
        self.world_ms += ms
        if is_monotonic:
            self.now_ms += ms
        self.heard_ms = self.now_ms
        for timer in sorted(self.timers, key=lambda each: each.at_ms):
            if timer.at_ms <= self.now_ms and timer in self.timers:
                timer.cancel()
                timer.task()
                await self.settle()


class Connection:
    """A socket of the client, and the session of it at a gateway."""

    def __init__(self, world: World, on_message: Callable[[Any], None], on_close: Callable[[int, str], None]) -> None:
        self._world = world
        self._on_message = on_message
        self._on_close = on_close
        self._is_cut = False
        self._is_over = False
        self._in_ms = self._out_ms = 0.0
        self.watched: dict[str, int] = {}
        self.followed: set[str] = set()
        world.connections.append(self)
        if world.mode == "refused":
            self.cut(False)
        elif world.mode == "open":
            self.say(WELCOME)

    def send(self, text: str) -> None:
        self._out_ms = max(self._out_ms, self._world.world_ms + self._world.latency())
        message = json.loads(text)
        self._world.after(self._out_ms - self._world.world_ms, lambda: self._take(message))

    def close(self, code: int) -> None:
        self._is_over = True
        self.cut(True)

    def cut(self, is_silent: bool) -> None:
        self._is_cut = True
        if self in self._world.connections:
            self._world.connections.remove(self)

        def tell() -> None:
            if not self._is_over:
                self._is_over = True
                self._on_close(1006, "")

        if not is_silent:
            self._world.after(self._world.latency(), tell)

    def say(self, message: dict[str, Any], body: bytes | None = None) -> None:
        self._in_ms = max(self._in_ms, self._world.world_ms + self._world.latency())
        line = json.dumps(message)

        def hear() -> None:
            if not self._is_cut and not self._is_over:
                self._world.heard_ms = self._world.now_ms
                self._on_message(line if body is None else f"{line}\n".encode() + body)

        self._world.after(self._in_ms - self._world.world_ms, hear)

    def changed(self, key: str) -> None:
        if self.watched.get(key, self._world.values[key]) < self._world.values[key]:
            self._tell(key)

    def _tell(self, key: str, **of: Any) -> None:
        order = self._world.values[key]
        if not of:
            self.watched[key] = order
        head = {"type": "value", **of, "key": key, "version": version_of(order), "order": order}
        self.say({**head, "contentType": "application/json"}, body_of(order))

    def _take(self, message: dict[str, Any]) -> None:
        if self._is_cut:
            return
        kind, request_id, key = message["type"], message.get("id"), message.get("key", "")
        chance = self._world.chance
        if kind == "ping":
            return self.say({"type": "pong", "id": request_id, "count": 1})
        if chance.random() < 0.05:
            error = {"type": "error", "id": request_id, "code": "rate_limited", "message": "", "retryAfterMs": 700}
            return self.say({**error, "key": key, "subscribed": False} if key else error)
        if kind == "subscribe":
            self._subscribe(request_id, message["keys"])
        elif kind == "get":
            self._tell(key, id=request_id)
        elif kind == "publish":
            self._publish(message, chance.random())
        elif kind == "history":
            self._history(message)
        elif kind == "join":
            joined = {"type": "joined", "id": request_id, "key": key, "name": message["name"]}
            self.say({**joined, "claim": message["claim"]})
        else:
            for each in message.get("keys", []):
                self.watched.pop(each, None)
                self.followed.discard(each)
            self.say({"type": "ok", "id": request_id})

    def _subscribe(self, request_id: Any, keys: list[Any]) -> None:
        for entry in keys:
            entry = entry if isinstance(entry, dict) else {"key": entry}
            key = entry["key"]
            if key in self._world.values:
                order = self._world.values[key]
                self.say({"type": "subscribed", "id": request_id, "keys": [{"key": key}]})
                if entry.get("version") == version_of(order):
                    self.watched[key] = order
                    self.say({"type": "current", "key": key, "version": entry["version"], "order": order})
                else:
                    self._tell(key)
            else:
                self.followed.discard(key)
                self._world.after(self._world.latency(), partial(self._begin, request_id, entry))

    def _begin(self, request_id: Any, entry: dict[str, Any]) -> None:
        if self._is_cut:
            return
        key, place, last = entry["key"], entry.get("after") or {}, entry.get("last", 0)
        room = self._world.rooms[key]
        recovered = place.get("epoch") == room.epoch and room.oldest - 1 <= place["seq"] <= room.seq
        given = room.messages[-last:] if last and not place else []
        if place and recovered:
            given = [each for each in room.messages if each["seq"] > place["seq"]]
        begun = {"key": key, "epoch": room.epoch, "seq": room.seq, "oldest": room.oldest, "recovered": recovered}
        self.say({"type": "subscribed", "id": request_id, "keys": [{**begun, "count": len(given)}]})
        for message in given:
            self.say({"type": "message", "key": key, **message})
        self.followed.add(key)

    def _publish(self, message: dict[str, Any], dice: float) -> None:
        key = message["key"]
        unknown = {"type": "error", "id": message["id"], "key": key, "code": "publish_unknown", "message": ""}
        if dice < 0.08:
            return self.say({**unknown, "subscribed": False})

        def keep() -> None:
            kept = self._world.keep(key, message["messageId"], message["data"])
            if self._is_cut:
                return
            if dice < 0.16:
                return self.say({**unknown, "subscribed": False})
            told = {"id": message["id"], "key": key, "epoch": self._world.rooms[key].epoch, "seq": kept["seq"]}
            self.say({"type": "published", **told, "at": kept["at"], "duplicate": kept.get("duplicate", False)})

        self._world.after(self._world.latency(), keep)

    def _history(self, message: dict[str, Any]) -> None:
        key = message["key"]
        room = self._world.rooms[key]
        if message.get("epoch", room.epoch) != room.epoch:
            error = {"type": "error", "id": message["id"], "key": key, "code": "other_epoch", "message": ""}
            return self.say({**error, "subscribed": False})
        head = {"type": "history", "id": message["id"], "key": key, "epoch": room.epoch}
        found = room.messages[-50:]
        self.say({**head, "oldest": room.oldest, "newest": room.seq, "messages": found, "more": False})


class Followed:
    """A handle of a room, and what it must be given next."""

    def __init__(self, judge: Judge, key: str, room: Room) -> None:
        self._judge = judge
        self._log = judge.world.rooms[key]
        self.key = key
        self.room = room
        self.last: Position | None = room.position
        self.moved_ms = 0.0
        room.on_change(lambda _: self._note(self.last or room.position))
        room.on_message(self._on_message)
        room.on_gap(self._on_gap)

    def _note(self, place: Position | None) -> None:
        self.last = place
        self.moved_ms = self._judge.world.world_ms

    def _on_message(self, message: Message) -> None:
        place, last = message.position, self.last
        if last and place != Position(last.epoch, last.seq + 1):
            self._judge.fail(f"{self.key}: {place} came after {last}")
        kept = [each["data"] for each in self._log.all if (each["epoch"], each["seq"]) == (place.epoch, place.seq)]
        if kept != [message.data]:
            self._judge.fail(f"{self.key}: {message.data} at {place} is not what was kept")
        self._note(place)

    def _on_gap(self, gap: Gap) -> None:
        last = self.last
        is_true = last and (
            last.epoch != gap.position.epoch
            if gap.reason == "epoch"
            else last.epoch == gap.position.epoch and (last.epoch, last.seq + 1) in self._log.gone
        )
        if not is_true:
            self._judge.fail(f"{self.key}: a gap ({gap.reason}) from {last} to {gap.position} that is none")
        self._note(gap.position)


class Judge:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.chance = self.world.chance
        self.keycast = Keycast("ws://gateway/ws", self.world)
        self.problems: list[str] = []
        self.watched: dict[str, tuple[Value, list[int]]] = {}
        self.followed: list[Followed] = []
        self.published: list[tuple[str, str, asyncio.Future[Any]]] = []
        self.calls: list[asyncio.Future[Any]] = []

    def fail(self, problem: str) -> None:
        self.problems.append(f"at {self.world.now_ms}: {problem}")

    def watch(self, key: str) -> None:
        if key in self.watched:
            return
        value, shown = self.keycast.value(key), [0]
        self.watched[key] = (value, shown)

        def look(state: Any) -> None:
            if state.version is None:
                return
            order = state.value["order"]
            if not shown[0] <= order <= self.world.values[key]:
                self.fail(f"{key} went from {shown[0]} to {order} of {self.world.values[key]}")
            shown[0] = order

        value.on_change(look)

    def follow(self, key: str) -> None:
        if len(self.followed) == 6:
            return
        kept = self.world.rooms[key].all[-1:]
        options: list[dict[str, Any]] = [{}, {"last": 3}, {"presence": True}]
        options += [{"after": Position(each["epoch"], each["seq"])} for each in kept]
        self.followed.append(Followed(self, key, self.keycast.room(key, **self.chance.choice(options))))

    def publish(self, key: str) -> None:
        data = f"message {len(self.published)}"
        with self.keycast.room(key, follow=False) as room:
            future = room.publish(data, deadline=self.chance.choice([5, 30, 240]))
        future.add_done_callback(lambda done: done.exception())
        self.published.append((key, data, future))

    def call(self) -> None:
        if not self.followed:
            return
        room = self.chance.choice(self.followed).room
        future = self.chance.choice([room.history, lambda: room.join("Ann"), room.leave])()  # type: ignore[operator]
        future.add_done_callback(lambda done: done.exception())
        self.calls.append(future)

    def close_some(self) -> None:
        if self.watched and self.chance.random() < 0.5:
            self.watched.pop(self.chance.choice(list(self.watched)))[0].close()
        elif self.followed:
            self.followed.pop(self.chance.randrange(len(self.followed))).room.close()

    def trim(self) -> None:
        room = self.world.rooms[self.chance.choice(ROOMS)]
        if self.chance.random() < 0.3:
            room.trim(self.chance.randrange(6))
        elif self.chance.random() < 0.1:
            self.world.begin(self.chance.choice(ROOMS))

    def disturb(self) -> None:
        self.world.mode = self.chance.choice(["open", "open", "refused", "silent"])
        if self.chance.random() < 0.7:
            self.world.cut(self.chance.random() < 0.3)

    def say(self, key: str) -> None:
        self.world.keep(key, f"others {self.world.world_ms} {self.chance.random()}", f"others {self.chance.random()}")

    async def act(self) -> None:
        world, chance = self.world, self.chance
        dice = chance.randrange(20)
        if dice < 3:
            world.change(chance.choice(KEYS))
        elif dice < 6:
            self.say(chance.choice(ROOMS))
        elif dice < 8:
            self.watch(chance.choice(KEYS))
        elif dice < 10:
            self.follow(chance.choice(ROOMS))
        elif dice < 13:
            self.publish(chance.choice(ROOMS))
        elif dice < 14:
            self.close_some()
        elif dice < 15:
            self.call()
        elif dice < 16:
            self.calls.append(self.keycast.get(chance.choice(KEYS)))
        elif dice < 17:
            self.trim()
        elif dice < 19:
            self.disturb()
        else:
            await world.sleep_ms(chance.choice([10, 1_000, 20_000, 45_000, 3_600_000]), chance.random() < 0.5)

    def inspect(self) -> None:
        if self.world.now_ms - self.world.heard_ms <= FOUND_MS:
            return
        for health, key in [(value.state.health, key) for key, (value, _) in self.watched.items()] + [
            (each.room.state.health, each.key) for each in self.followed
        ]:
            if health == "live":
                self.fail(f"{key} is live, and nothing was heard")

    def finish(self) -> None:
        world = self.world
        for key, (value, shown) in self.watched.items():
            if value.state.health != "live" or shown[0] != world.values[key]:
                self.fail(f"{key} is {value.state.health} at {shown[0]} of {world.values[key]}")
        for each in self.followed:
            log, state = world.rooms[each.key], each.room.state
            if state.health != "live" or each.last != Position(log.epoch, log.seq) or state.pending:
                self.fail(f"{each.key} is {state.health} at {each.last} of {log.epoch} {log.seq}")
        if not all(call.done() for call in self.calls):
            self.fail("a call is not answered")
        places: dict[tuple[str, str], int] = {}
        for key, data, future in self.published:
            kept = [each for each in world.rooms[key].all if each["data"] == data]
            if len({each["epoch"] for each in kept}) < len(kept):
                self.fail(f"{data} is kept twice")
            if not future.done():
                self.fail(f"{data} has no outcome")
                continue
            error = future.exception()
            if isinstance(error, KeycastError):
                if error.kept is False and kept:
                    self.fail(f"{data} is kept, and was told not to be: {error}")
                continue
            place = future.result().position
            if not any((each["epoch"], each["seq"]) == (place.epoch, place.seq) for each in kept):
                self.fail(f"{data} was told to be at {place}")
            if place.seq <= places.get((key, place.epoch), 0):
                self.fail(f"{key}: {data} overtook another")
            places[key, place.epoch] = place.seq


async def live(seed: int, steps: int) -> list[str]:
    judge = Judge(seed)
    world, chance = judge.world, judge.chance
    for _ in range(steps):
        for _ in range(chance.randrange(1, 4)):
            await judge.act()
        await world.pass_ms(chance.choice([0, 1, 10, 100, 1_000, 6_000, 30_000]))
        judge.inspect()
        if judge.problems:
            return judge.problems
    world.mode = "open"
    for _ in range(3):
        await world.pass_ms(100_000)
        for key in KEYS:
            world.change(key)
        for key in ROOMS:
            judge.say(key)
        await world.pass_ms(5_000)
    judge.finish()
    judge.keycast.close()
    await world.pass_ms(1_000)
    if world.timers or world.connections or world.reported:
        judge.fail(f"left: {len(world.timers)} timers, {len(world.connections)} connections, {world.reported}")
    return judge.problems


#: More of them: RANDOM_SEEDS=1000, from RANDOM_FIRST on.
SEEDS = int(os.environ.get("RANDOM_SEEDS", "40"))
FIRST = int(os.environ.get("RANDOM_FIRST", "1"))


def test_connections_that_come_and_go() -> None:
    found = {seed: problems[:4] for seed in range(FIRST, FIRST + SEEDS) if (problems := asyncio.run(live(seed, 80)))}
    assert not found
