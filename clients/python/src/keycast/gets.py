"""Gets: one value each, asked anew after a reconnect until it is answered or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .content import Content
from .environment import Alarm, Environment
from .errors import KeycastError
from .subscriber import PAUSE_DEFAULT_MS

#: How many may be under way: a gateway lets so many of a session wait, unless it is set otherwise.
UNDER_WAY_MAX = 64


class _Get:
    def __init__(self, key: str, future: asyncio.Future[Any]) -> None:
        self.key = key
        self.future = future
        #: What the gateway need not send.
        self.held: Content | None = None


class Gets:
    def __init__(
        self,
        environment: Environment,
        send: Callable[[dict[str, Any]], None],
        next_id: Callable[[], int],
        held_of: Callable[[str], Content | None],
    ) -> None:
        self._environment = environment
        self._alarm = Alarm(environment)
        self._send = send
        self._next_id = next_id
        self._held_of = held_of
        self._limits: dict[str, int] | None = None
        self._is_paused = False
        self._queue: list[_Get] = []
        self._under_way: dict[int, _Get] = {}

    def get(self, key: str) -> asyncio.Future[Any]:
        future = self._environment.future()
        self._queue.append(_Get(key, future))
        self._flush()
        return future

    def opened(self, limits: dict[str, int]) -> None:
        self._limits = limits
        self._flush()

    def lost(self) -> None:
        self._limits = None
        self._is_paused = False
        self._alarm.clear()
        # The oldest get goes first again.
        self._queue = [*self._under_way.values(), *self._queue]
        self._under_way = {}

    def fail(self, error: KeycastError) -> None:
        queue, self._queue = self._queue, []
        for get in queue:
            if not get.future.done():
                get.future.set_exception(error)

    def answered(self, message: dict[str, Any], body: bytes | None) -> bool:
        """Takes the answer to a get, and says whether it was one."""
        get = self._under_way.pop(message["id"], None)
        if not get:
            return False
        if message.get("code") == "rate_limited":
            self._queue.append(get)
            self._is_paused = True
            self._alarm.set(self._resume, message.get("retryAfterMs", PAUSE_DEFAULT_MS))
        elif not get.future.done():
            self._settle(get, message, body)
        self._flush()
        return True

    def _settle(self, get: _Get, message: dict[str, Any], body: bytes | None) -> None:
        if message["type"] == "error":
            get.future.set_exception(KeycastError.of(message, get.key))
        elif body is not None:
            get.future.set_result(Content(message["version"], message["contentType"], body).value)
        else:
            get.future.set_result(get.held.value if get.held else None)

    def _resume(self) -> None:
        self._is_paused = False
        self._flush()

    def _flush(self) -> None:
        if not self._limits or self._is_paused:
            return
        # A get whose caller was cancelled is asked for no more.
        self._queue = [get for get in self._queue if not get.future.done()]
        room = min(UNDER_WAY_MAX, self._limits["requestsPerSecond"]) - len(self._under_way)
        sent, self._queue = self._queue[: max(0, room)], self._queue[max(0, room) :]
        for get in sent:
            request_id = self._next_id()
            self._under_way[request_id] = get
            get.held = self._held_of(get.key)
            message: dict[str, Any] = {"type": "get", "id": request_id, "key": get.key}
            if get.held:
                message["version"] = get.held.version
            self._send(message)
