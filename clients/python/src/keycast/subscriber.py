"""Tells the gateway which keys are wanted: in few messages, one at a time, as fast as it allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .connection.frames import frame_bytes
from .environment import Alarm
from .parts import Deps
from .requests import PAUSE_DEFAULT_MS, request_bytes_max


@dataclass
class _Request:
    id: int
    is_leaving: bool
    #: A dict is a set that keeps its order.
    keys: dict[str, None]
    #: Those of its keys that the session was not subscribed to before.
    added: set[str]


class Subscriber:
    def __init__(
        self,
        deps: Deps,
        entry_of: Callable[[str, int], Any],
        on_refused: Callable[[str, str, str], None],
        on_forgotten: Callable[[str], None],
    ) -> None:
        self._environment = deps.environment
        self._alarm = Alarm(deps.environment)
        self._send = deps.send
        self._next_id = deps.next_id
        #: How the subscribe of an id names a key: with what is held of it already.
        self._entry_of = entry_of
        self._on_refused = on_refused
        #: The gateway sends nothing more of a key.
        self._on_forgotten = on_forgotten
        self._limits: dict[str, int] | None = None
        self._to_subscribe: dict[str, None] = {}
        #: Also keys that the gateway has been asked for and has not answered yet.
        self._subscribed: set[str] = set()
        #: Part of `_subscribed`.
        self._to_unsubscribe: dict[str, None] = {}
        self._under_way: _Request | None = None

    def want(self, key: str) -> None:
        """Subscribes to a key, or asks anew where it stands."""
        self._to_unsubscribe.pop(key, None)
        self._to_subscribe[key] = None
        self._soon()

    def keep(self, key: str) -> None:
        """Goes on with a key that was dropped and is not forgotten."""
        self._to_unsubscribe.pop(key, None)

    def drop(self, key: str) -> None:
        self._to_subscribe.pop(key, None)
        if key not in self._subscribed:
            return self._on_forgotten(key)
        self._to_unsubscribe[key] = None
        self._soon()

    def ended(self, key: str, *, is_said: bool = False) -> None:
        """The gateway ended a subscription, as it has just said, or it is another's."""
        self._to_subscribe.pop(key, None)
        self._subscribed.discard(key)
        if key in self._to_unsubscribe:
            self._forget(key)
        self._settle(key, is_said=is_said)

    def is_subscribed(self, key: str) -> bool:
        """Whether what the gateway says of a key is of a subscription of now, not of one before."""
        return key in self._subscribed

    def opened(self, limits: dict[str, int], keys: Iterable[str]) -> None:
        self._limits = limits
        self._to_subscribe = dict.fromkeys(keys)
        self._flush()

    def lost(self) -> None:
        self._limits = None
        self._under_way = None
        self._alarm.clear()
        self._subscribed.clear()
        forgotten, self._to_unsubscribe = self._to_unsubscribe, {}
        for key in forgotten:
            self._on_forgotten(key)

    def answered(self, message: dict[str, Any]) -> bool:
        """Takes an answer to a whole request, and says whether it was one."""
        request = self._under_way
        if not request:
            return False
        if message.get("id") != request.id:
            return False
        if "key" in message:
            self._settle(message["key"])
            return False
        self._under_way = None
        if message.get("code") == "rate_limited":
            self._repeat(request, message.get("retryAfterMs", PAUSE_DEFAULT_MS))
        elif message["type"] == "error" and not request.is_leaving:
            for key in request.keys:
                self._on_refused(key, message["code"], message.get("message", ""))
        self._flush()
        return True

    def _settle(self, key: str, *, is_said: bool = False) -> None:
        """The gateway does not answer a subscribe each of whose keys another took, or got an error of its own."""
        request = self._under_way
        if not request or request.is_leaving:
            return
        # It may have said so before it read the request, which then subscribes to what nobody hears.
        if is_said and key in request.keys:
            self._to_unsubscribe[key] = None
        request.keys.pop(key, None)
        if not request.keys:
            self._under_way = None
            self._soon()

    def _soon(self) -> None:
        """The changes of one turn go out in one message: the first flush leaves nothing to those that follow it."""
        self._environment.soon(self._flush)

    def _flush(self) -> None:
        """Sends as many keys as fit into one message."""
        limits = self._limits
        # Unsubscribes before it subscribes, for this makes room.
        is_leaving = bool(self._to_unsubscribe)
        waiting = self._to_unsubscribe if is_leaving else self._to_subscribe
        # The alarm is set while the gateway wants a pause.
        if not waiting or not limits or self._under_way or self._alarm.is_set:
            return
        most = limits["keysPerSession"]
        kind = "unsubscribe" if is_leaving else "subscribe"
        request_id = self._next_id()
        bytes_max = request_bytes_max(limits)
        size = frame_bytes({"type": kind, "id": request_id, "keys": []})
        keys: dict[str, None] = {}
        added = set()
        entries = []
        for key in list(waiting):
            # A listener that hears of one may close handles of any.
            if key not in waiting:
                continue
            is_added = key not in self._subscribed
            if is_added and len(self._subscribed) >= most:
                waiting.pop(key)
                self._on_refused(key, "too_many_keys", f"a session may subscribe to {most} keys")
                continue
            entry = key if is_leaving else self._entry_of(key, request_id)
            if key not in waiting:
                continue
            size += frame_bytes(entry) + 1
            if size > bytes_max and keys:
                break
            keys[key] = None
            entries.append(entry)
            waiting.pop(key)
            if is_leaving:
                self._subscribed.discard(key)
                self._on_forgotten(key)
            else:
                if is_added:
                    added.add(key)
                self._subscribed.add(key)
        if keys:
            self._under_way = _Request(request_id, is_leaving, keys, added)
            self._send({"type": kind, "id": request_id, "keys": entries})

    def _repeat(self, request: _Request, after_ms: float) -> None:
        """Asks again, later, what was refused as a whole."""
        for key in request.keys:
            is_added = key in request.added
            if request.is_leaving:
                self._subscribed.add(key)
                # A key that is wanted again meanwhile is sent whole when it is subscribed to once more.
                if key not in self._to_subscribe:
                    self._to_unsubscribe[key] = None
            else:
                if is_added:
                    self._subscribed.discard(key)
                if key not in self._to_unsubscribe:
                    self._to_subscribe[key] = None
                elif is_added:
                    self._forget(key)
        self._alarm.set(self._flush, after_ms)

    def _forget(self, key: str) -> None:
        """Nobody wants the key, and the session is not subscribed to it."""
        self._to_unsubscribe.pop(key, None)
        self._on_forgotten(key)
