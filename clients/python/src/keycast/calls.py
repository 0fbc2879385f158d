"""Requests with one answer each: asked anew after a reconnect until they are answered or given up."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .connection.frames import frame_bytes
from .environment import Alarm, Environment
from .errors import KeycastError
from .requests import PAUSE_DEFAULT_MS

#: How many may be under way: a gateway lets so many of a session wait, unless it is set otherwise.
UNDER_WAY_MAX = 64

#: Each is much shorter, unless its name is a text that somebody pasted: a gateway would close the connection for good.
CALL_BYTES_MAX = 4_096


class _Call:
    def __init__(
        self,
        key: str,
        make: Callable[[], dict[str, Any]],
        read: Callable[[dict[str, Any], bytes | None], Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.key = key
        #: Gives the request without its id, each time it is sent.
        self.make = make
        #: Gives what the answer says.
        self.read = read
        self.future = future


class Calls:
    def __init__(
        self, environment: Environment, send: Callable[[dict[str, Any]], None], next_id: Callable[[], int]
    ) -> None:
        self._environment = environment
        self._alarm = Alarm(environment)
        self._send = send
        self._next_id = next_id
        self._limits: dict[str, int] | None = None
        #: A set that keeps its order, whose first is had at once.
        self._queue: OrderedDict[_Call, None] = OrderedDict()
        self._under_way: dict[int, _Call] = {}

    def ask(
        self, key: str, make: Callable[[], dict[str, Any]], read: Callable[[dict[str, Any], bytes | None], Any]
    ) -> asyncio.Future[Any]:
        future = self._environment.future()
        try:
            if frame_bytes(make()) > CALL_BYTES_MAX:
                raise KeycastError("too_large", "it is too long to be sent", key)
        except (KeycastError, TypeError, ValueError) as error:
            # What is no JSON fails here: asked again after each loss, it would end every session.
            future.set_exception(error)
            return future
        call = _Call(key, make, read, future)
        self._queue[call] = None
        # Calls that are given up while there is no connection would stay until there is one.
        future.add_done_callback(lambda _: self._queue.pop(call, None))
        self._flush()
        return future

    def refused(self, error: KeycastError) -> asyncio.Future[Any]:
        """A call that fails before it is made."""
        future = self._environment.future()
        # Each raise of one error adds to its trace.
        future.set_exception(error.with_traceback(None))
        return future

    def opened(self, limits: dict[str, int]) -> None:
        self._limits = limits
        self._flush()

    def lost(self) -> None:
        self._limits = None
        self._alarm.clear()
        # The oldest call goes first again.
        self._queue = OrderedDict.fromkeys((*self._under_way.values(), *self._queue))
        self._under_way = {}

    def end(self, error: KeycastError) -> None:
        queue, self._queue = self._queue, OrderedDict()
        for call in queue:
            if not call.future.done():
                call.future.set_exception(error)

    def received(self, message: dict[str, Any], body: bytes | None) -> bool:
        """Takes the answer to a call, and says whether it was one."""
        call = self._under_way.pop(message.get("id", 0), None)
        if not call:
            return False
        if message.get("code") in ("rate_limited", "token_expired"):
            self._queue[call] = None
            self._alarm.set(self._flush, message.get("retryAfterMs", PAUSE_DEFAULT_MS))
        elif not call.future.done():
            if message["type"] == "error":
                call.future.set_exception(KeycastError.of(message, call.key))
            else:
                try:
                    call.future.set_result(call.read(message, body))
                except Exception as error:
                    call.future.set_exception(error)
        self._flush()
        return True

    def _flush(self) -> None:
        # Set while the gateway wants a pause.
        if not self._limits or self._alarm.is_set:
            return
        most = min(UNDER_WAY_MAX, self._limits["requestsPerSecond"])
        while self._queue and len(self._under_way) < most:
            call, _ = self._queue.popitem(last=False)
            # A call whose caller was cancelled is made no more.
            if call.future.done():
                continue
            request_id = self._next_id()
            self._under_way[request_id] = call
            message = call.make()
            self._send({"type": message["type"], "id": request_id, **message})
