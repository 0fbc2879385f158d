"""A world for tests of the client: a clock that only moves when told, and sockets that are not connected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from keycast import Keycast, Room
from keycast.environment import LoopEnvironment

LIMITS = {"messageBytes": 262_144, "keysPerSession": 5_000, "requestsPerSecond": 1_000}
WELCOME = {"type": "welcome", "session": "s", "heartbeatMs": 25_000, "limits": LIMITS}


class FakeSocket:
    def __init__(self, world: World, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]):
        self._world = world
        self.on_message = on_message
        self._on_close = on_close
        self._is_over = False

    def send(self, text: str) -> None:
        self._world.deeds.append({"out": json.loads(text)})

    def close(self, code: int) -> None:
        if not self._is_over:
            self._world.deeds.append({"hangs": True, "code": code})
        self._is_over = True

    def say(self, message: dict[str, Any], body: bytes | None = None) -> None:
        text = json.dumps(message)
        self.on_message(text if body is None else f"{text}\n".encode() + body)

    def lose(self, code: int) -> None:
        self._is_over = True
        self._on_close(code, "")


class FakeTimer:
    def __init__(self, timers: list[FakeTimer], at_ms: float, task: Callable[[], None]):
        self._timers = timers
        self.at_ms = at_ms
        self.task = task
        timers.append(self)

    def cancel(self) -> None:
        if self in self._timers:
            self._timers.remove(self)


class World(LoopEnvironment):
    """An environment, and what a test does with it."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.chance = 1.0
        self.timers: list[FakeTimer] = []
        self.deeds: list[dict[str, Any]] = []
        self.socket: FakeSocket
        self.reported: list[BaseException] = []

    def now(self) -> float:
        return self.now_ms

    date = now

    def random(self) -> float:
        return self.chance

    def later(self, ms: float, task: Callable[[], None]) -> FakeTimer:
        return FakeTimer(self.timers, self.now_ms + ms, task)

    def report(self, error: BaseException, message: str) -> None:
        self.reported.append(error)

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> FakeSocket:
        self.deeds.append({"dials": url})
        self.socket = FakeSocket(self, on_message, on_close)
        return self.socket

    async def settle(self) -> None:
        """Lets all that can go on without time go on."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def pass_ms(self, ms: float) -> None:
        until_ms = self.now_ms + ms
        while True:
            await self.settle()
            due = sorted((timer for timer in self.timers if timer.at_ms <= until_ms), key=lambda timer: timer.at_ms)
            if not due:
                break
            self.timers.remove(due[0])
            self.now_ms = due[0].at_ms
            due[0].task()
        self.now_ms = until_ms
        await self.settle()


class Setup:
    """A client whose connection is open, and a gateway that is played."""

    def __init__(self) -> None:
        self.world = World()
        self.keycast = Keycast("ws://gateway/ws", self.world)
        self.welcome()

    def welcome(self) -> None:
        self.world.socket.say(WELCOME)

    async def value(self, version: str, text: str, content_type: str = "application/json") -> None:
        await self.world.settle()
        message = {"type": "value", "key": "a:1", "version": version, "contentType": content_type}
        self.world.socket.say(message, text.encode())
        await self.world.settle()

    async def sent(self) -> dict[str, Any]:
        """The last message that went out."""
        await self.world.settle()
        return next(dict(deed["out"]) for deed in reversed(self.world.deeds) if "out" in deed)

    async def follow(self, **options: Any) -> Room:
        """A handle whose stream has begun in an empty room."""
        room = self.keycast.room("room:1", **options)
        begun = {"key": "room:1", "epoch": "E", "seq": 0, "oldest": 1, "recovered": False, "count": 0}
        self.world.socket.say({"type": "subscribed", "id": (await self.sent())["id"], "keys": [begun]})
        return room

    def message(self, seq: int, data: Any = None) -> None:
        self.world.socket.say({"type": "message", "key": "room:1", "seq": seq, "at": 1_500, "data": data or seq})


def run(test: Callable[[Setup], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    async def with_setup() -> None:
        await test(Setup())

    def runner() -> None:
        asyncio.run(with_setup())

    return runner
