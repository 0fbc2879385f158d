"""The rooms that somebody follows, publishes into or is in: takes what the gateway says of them."""

from __future__ import annotations

import asyncio
from typing import Any

from ..connection.backoff import backoff_ms
from ..errors import KeycastError, end_of
from ..keys import bad_key
from ..parts import Deps
from ..subscriber import Subscriber
from ..values.values import Values
from .handle import Room
from .messages import History, Message, Position, Published, check_position
from .publishes import Publishes
from .room import Reader, RoomEntry


#: A gateway gives no more messages at once.
_LAST_MAX = 500

class Rooms:
    def __init__(self, deps: Deps, values: Values, keep_forbidden: bool) -> None:
        self._deps = deps
        self._environment = deps.environment
        self._calls = deps.calls
        self._keep_forbidden = keep_forbidden
        self._values = values
        self._entries: dict[str, RoomEntry] = {}
        self._subscriber = Subscriber(deps, self._name, self._refuse, on_forgotten=self._forget)
        self._publishes = Publishes(deps, on_change=self._show_pending)
        self._is_open = False
        #: Once nothing is asked of the gateway any more.
        self._closed: KeycastError | None = None

    def room(
        self, key: str, after: Position | None, last: int | None, presence: bool, follow: bool, buffer_messages: int
    ) -> Room:
        check_position("after", after)
        if last is not None and not (isinstance(last, int) and 0 <= last <= _LAST_MAX):
            raise ValueError(f"last must be a whole number from 0 to {_LAST_MAX}, not {last!r}")
        if buffer_messages < 1:
            raise ValueError(f"buffer_messages must be 1 or more, not {buffer_messages!r}")
        entry = self._entries.get(key) or self._create(key)
        entry.handles += 1
        reader = Reader(after, last, presence)
        room = Room(self._environment, entry, reader, follow, buffer_messages, self)
        error = bad_key(key)
        if self._closed:
            # It may be asked for when the client connects again.
            if follow:
                entry.readers[reader] = None
            entry.end = "ended"
            entry.become(error=self._closed)
        elif error:
            self._fail(entry, error)
        elif follow:
            if entry.ended:
                self.retry(entry)
            self._subscriber.keep(key)
            entry.add(reader)
        return room

    def publish(self, key: str, data: Any, message_id: str | None, deadline: float) -> asyncio.Future[Published]:
        return self._publishes.publish(key, data, message_id, deadline * 1_000, self._refusal_of(key))

    def history(
        self, key: str, before: Position | None, after: Position | None, limit: int | None
    ) -> asyncio.Future[History]:
        check_position("before", before)
        check_position("after", after)
        if before and after:
            raise ValueError("a part of the history has before or after, not both")
        error = self._refusal_of(key)
        if error:
            return self._calls.refused(error)
        bound = before or after
        request = {
            "type": "history",
            "key": key,
            "epoch": bound and bound.epoch,
            "before": before and before.seq,
            "after": after and after.seq,
            "limit": limit,
        }
        request = {field: value for field, value in request.items() if value is not None}

        def read(message: dict[str, Any], _: bytes | None) -> History:
            # A message of its own would be in the history, and pending, too.
            for each in message["messages"]:
                self._publishes.saw({"key": key, **each}, message["epoch"])
            return _history_of(message)

        return self._calls.ask(key, lambda: request, read)

    def retry(self, entry: RoomEntry) -> None:
        """Asks again for a room that was refused or has ended, and for the membership."""
        if self._refusal_of(entry.key):
            return
        if entry.ended:
            entry.end = None
            entry.become(error=None)
        # A listener may have closed the client.
        if not self._closed:
            entry.want()
        if entry.membership.is_waiting:
            entry.membership.renew()

    def closed(self, entry: RoomEntry, reader: Reader) -> None:
        """A handle was closed."""
        entry.handles -= 1
        entry.readers.pop(reader, None)
        if entry.handles == 0 and entry.membership.stands:
            entry.membership.abandon()
        if not entry.readers:
            self._subscriber.drop(entry.key)

    def opened(self, limits: dict[str, int]) -> None:
        self._is_open = True
        wanted = [key for key, entry in self._entries.items() if not entry.ended and entry.readers]
        self._subscriber.opened(limits, wanted)
        for entry in list(self._entries.values()):
            entry.become()
            entry.membership.renew()
        self._publishes.opened(limits)

    def wanted_as_value(self, key: str) -> None:
        """A value of a key was asked for. Where its messages arrive as a room's, the gateway is not asked."""
        entry = self._entries.get(key)
        if entry and entry.state.live and entry.readers:
            self._values.fail_as_room(key)

    def lost(self) -> None:
        self._is_open = False
        self._subscriber.lost()
        self._publishes.lost()
        for entry in list(self._entries.values()):
            entry.membership.lost()
            entry.refusal.clear()
            entry.stop()

    def received(self, message: dict[str, Any], _: bytes | None) -> bool:
        """Says whether a message was about a room."""
        if self._publishes.answered(message):
            return True
        kind = message["type"]
        if kind == "subscribed":
            self._begin(message.get("id"), message["keys"])
        # Values are told where rooms begin: somebody may want one of them as a value.
        if self._subscriber.answered(message):
            return bool(kind != "subscribed")
        entry = self._entries.get(message.get("key", ""))
        if entry and entry.membership.stands and self._ends_join(entry, message):
            # Whether the room is followed is another matter.
            entry.membership.refuse(KeycastError.of(message, entry.key))
            return True
        if not entry or not self._subscriber.is_subscribed(entry.key):
            return False
        match kind:
            case "error":
                # Any other with an id answers a request that was given up.
                if message.get("id", entry.ask_id) == entry.ask_id:
                    self._fail(entry, KeycastError.of(message, entry.key), is_said=True)
            case "gap":
                entry.take_gap(message)
            case "members" | "presence":
                entry.members.take(message)
            case "message":
                if entry.state.live and entry.position:
                    self._publishes.saw(message, entry.position.epoch)
                entry.take(message)
        return True

    def end(self, error: KeycastError) -> None:
        """Nothing is asked of the gateway any more."""
        self._closed = error
        self._publishes.end(error)
        for entry in list(self._entries.values()):
            entry.end = "ended"
            entry.become(error=error, live=False)

    def revive(self) -> None:
        """A person insists: what was refused or has ended is asked for again."""
        self._closed = None
        for entry in list(self._entries.values()):
            if entry.end or entry.membership.is_waiting:
                self.retry(entry)

    def _refusal_of(self, key: str) -> KeycastError | None:
        """Why nothing of a key can be asked."""
        return self._closed or bad_key(key)

    def _create(self, key: str) -> RoomEntry:
        entry = RoomEntry(
            key,
            self._deps,
            want=self._subscriber.want,
            is_open=lambda: self._is_open,
            refusal_of=self._refusal_of,
            forget=self._forget,
        )
        self._entries[key] = entry
        # Messages of a handle that is closed may still be under way.
        self._show_pending(key)
        return entry

    def _name(self, key: str, request_id: int) -> Any:
        entry = self._entries.get(key)
        return entry.ask(request_id) if entry else key

    def _show_pending(self, key: str) -> None:
        entry = self._entries.get(key)
        if entry:
            entry.become(pending=self._publishes.pending(key))

    def _refuse(self, key: str, code: str, message: str) -> None:
        entry = self._entries.get(key)
        if entry:
            self._fail(entry, KeycastError(code, message, key))

    def _forget(self, key: str) -> None:
        """Perhaps nothing is wanted of the key any more."""
        entry = self._entries.get(key)
        if not entry or self._subscriber.is_subscribed(key):
            return
        # The next handle would take a room that is still live for one that is subscribed to.
        entry.stop()
        # A room that comes next would not know the claim of a join under way.
        if entry.handles == 0 and not entry.membership.is_busy:
            entry.refusal.clear()
            del self._entries[key]

    def _fail(self, entry: RoomEntry, error: KeycastError, *, is_said: bool = False) -> None:
        entry.refusals = entry.refusals + 1 if entry.end == "forbidden" else 0
        entry.end = end_of(error)
        if entry.end == "forbidden":
            wait_ms = backoff_ms(self._environment.random(), entry.refusals)
            entry.refusal.set(lambda: self.retry(entry) if entry.end == "forbidden" else None, wait_ms)
            if not self._keep_forbidden:
                entry.members.forget()
        # Nobody may want it any more: then the alarm ends, too.
        if entry.end:
            self._subscriber.ended(entry.key, is_said=is_said)
        entry.become(live=entry.state.live and bool(error.subscribed), error=error)

    def _begin(self, request_id: int | None, begun: list[dict[str, Any]]) -> None:
        for each in begun:
            if "epoch" in each:
                self._take_from_values(each["key"], request_id)
            entry = self._entries.get(each["key"])
            if not entry or not self._subscriber.is_subscribed(entry.key):
                continue
            if request_id is None:
                # The gateway began the stream anew by itself: a live one goes on if that is where it had stopped.
                if entry.state.live and each.get("recovered"):
                    # What it had rested for is over.
                    entry.become(error=None)
                    continue
                # First: a listener that hears of it may close the last handle, and the key is wanted no more.
                entry.want()
                # Messages before the answer may be of another epoch.
                entry.become(live=False)
            elif entry.state.live or entry.ask_id != request_id:
                continue
            elif "epoch" in each:
                entry.begin(each)
            else:
                self._refuse(entry.key, "not_a_room", "this key is a value")
                # Else the gateway goes on sending it to nobody.
                if not self._values.is_subscribed(entry.key):
                    self._unsubscribe(entry.key)

    def _take_from_values(self, key: str, request_id: int | None) -> None:
        """A room is begun, perhaps by the subscribe of a value: for the gateway a session has one stream of a key."""
        was_value = self._values.fail_as_room(key)
        entry = self._entries.get(key)
        if entry and self._subscriber.is_subscribed(key):
            # The value was asked for later: the stream does not go on as this client's readers need it.
            if request_id is not None and 0 < entry.ask_id < request_id:
                self._subscriber.ended(key)
                entry.want()
        elif was_value:
            self._unsubscribe(key)

    def _unsubscribe(self, key: str) -> None:
        """At once: a subscribe that comes next is not undone by it."""
        self._deps.send({"type": "unsubscribe", "id": self._deps.next_id(), "keys": [key]})

    def _ends_join(self, entry: RoomEntry, message: dict[str, Any]) -> bool:
        """Whether the gateway ends the join that stood. One that ends the subscription says so, and leaves the join."""
        if message["type"] != "error" or message.keys() & {"id", "retryAfterMs"}:
            return False
        is_of_subscription = self._subscriber.is_subscribed(entry.key) and not message.get("subscribed")
        return message["code"] == "name_taken" or not is_of_subscription


def _history_of(message: dict[str, Any]) -> History:
    epoch = message["epoch"]
    return History(
        messages=tuple(Message.of(epoch, each) for each in message["messages"]),
        more=message["more"],
        truncated=message.get("truncated", False),
        oldest=Position(epoch, message["oldest"]),
        newest=Position(epoch, message["newest"]),
    )
