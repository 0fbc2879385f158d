"""Messages published here: one under way in each room, so that their order holds, until its outcome is known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from ..connection.frames import frame_bytes
from ..environment import Alarm, Environment
from ..errors import KeycastError
from ..parts import Deps
from ..random_text import random_text
from ..requests import PAUSE_DEFAULT_MS, request_bytes_max
from .messages import PendingMessage, Position, Published


#: Whether a message is kept under its id, by the code of the error. After any other it is not.
_KEPT = {"publish_unknown": None, "id_conflict": True}

#: So many of a room may wait: all of them are shown anew with each change.
_PENDING_MAX = 10_000


class _Publish:
    def __init__(self, message_id: str, data: Any, at: float, environment: Environment) -> None:
        self.message_id = message_id
        self.data = data
        self.shown = PendingMessage(message_id, data, at)
        self.future: asyncio.Future[Published] = environment.future()
        self.alarm = Alarm(environment)
        #: Gives it up if its deadline has passed.
        self.look: Callable[[], None] = lambda: None
        #: Of the request under way; None where none is.
        self.id: int | None = None
        #: Whether a try may have succeeded whose answer is lost.
        self.is_unknown = False
        #: Of the last try.
        self.error: dict[str, Any] | None = None


class _Lane:
    """The messages for one room."""

    def __init__(self, key: str, environment: Environment) -> None:
        self.key = key
        self.queue: list[_Publish] = []
        #: Set while the gateway wants a pause.
        self.alarm = Alarm(environment)


class Publishes:
    def __init__(self, deps: Deps, on_change: Callable[[str], None]) -> None:
        self._environment = deps.environment
        self._send = deps.send
        self._next_id = deps.next_id
        #: The room's pending messages are others.
        self._on_change = on_change
        self._limits: dict[str, int] | None = None
        self._lanes: dict[str, _Lane] = {}
        #: By id of the request.
        self._under_way: dict[int, _Lane] = {}

    def pending(self, key: str) -> tuple[PendingMessage, ...]:
        lane = self._lanes.get(key)
        return tuple([each.shown for each in lane.queue]) if lane else ()

    def publish(
        self, key: str, data: Any, message_id: str | None, deadline_ms: float, refusal: KeycastError | None
    ) -> asyncio.Future[Published]:
        """`refusal`: why nothing can be published there."""
        # As it is now: whoever gave it may change it.
        copy, message_id = json.loads(json.dumps([data, message_id or random_text()], allow_nan=False))
        publish = _Publish(message_id, copy, self._environment.date() / 1_000, self._environment)
        lane = self._lanes.setdefault(key, _Lane(key, self._environment))
        lane.queue.append(publish)
        if len(lane.queue) > _PENDING_MAX:
            refusal = refusal or KeycastError("too_many_waiting", f"{_PENDING_MAX} messages wait already", key)
        if refusal:
            self._fail(lane, publish, refusal)
            return publish.future

        def on_deadline() -> None:
            publish.is_unknown = publish.is_unknown or publish.id is not None
            none = {"code": "not_sent", "message": f"no outcome within {deadline_ms / 1_000} s"}
            self._fail(lane, publish, KeycastError.of(publish.error or none, key))

        def look() -> None:
            if self._environment.date() - publish.shown.at * 1_000 >= deadline_ms:
                on_deadline()

        def on_done(future: asyncio.Future[Published]) -> None:
            if future.cancelled() and publish in lane.queue:
                self._remove(lane, publish)

        publish.look = look
        publish.alarm.set(on_deadline, deadline_ms)
        publish.future.add_done_callback(on_done)
        self._on_change(key)
        self._flush(lane)
        return publish.future

    def answered(self, message: dict[str, Any]) -> bool:
        """Takes the answer to a publish, and says whether it was one."""
        lane = self._under_way.get(message.get("id", 0))
        if not lane:
            return False
        publish = lane.queue[0]
        if message["type"] == "published":
            self._succeed(lane, publish, message, message["epoch"])
            return True
        if message["type"] != "error":
            return False
        self._under_way.pop(message["id"])
        publish.id = None
        publish.error = message
        if message["code"] == "publish_unknown":
            publish.is_unknown = True
        elif "retryAfterMs" not in message:
            self._fail(lane, publish, KeycastError.of(message, lane.key))
            return True
        lane.alarm.set(lambda: self._flush(lane), message.get("retryAfterMs", PAUSE_DEFAULT_MS))
        return True

    def saw(self, message: dict[str, Any], epoch: str) -> None:
        """A message came. It may be one of those published here, whose answer is still on its way."""
        lane = self._lanes.get(message["key"])
        publish = lane.queue[0] if lane else None
        if not lane or not publish or publish.message_id != message.get("messageId"):
            return
        was_sent = publish.id is not None or publish.is_unknown
        if was_sent and json.dumps(publish.data) == json.dumps(message["data"]):
            self._succeed(lane, publish, message, epoch)

    def opened(self, limits: dict[str, int]) -> None:
        # The loop's clock stands still while a computer sleeps: the journal may have forgotten an id by now.
        for lane in list(self._lanes.values()):
            for publish in list(lane.queue):
                publish.look()
        self._limits = limits
        for lane in list(self._lanes.values()):
            self._flush(lane)

    def lost(self) -> None:
        self._limits = None
        self._under_way.clear()
        for lane in self._lanes.values():
            lane.alarm.clear()
            first = lane.queue[0]
            first.is_unknown = first.is_unknown or first.id is not None
            first.id = None

    def end(self, error: KeycastError) -> None:
        for lane in list(self._lanes.values()):
            for publish in list(lane.queue):
                self._fail(lane, publish, error)

    def _flush(self, lane: _Lane) -> None:
        if not self._limits or lane.alarm.is_set or not lane.queue or lane.queue[0].id is not None:
            return
        first = lane.queue[0]
        first.id = self._next_id()
        self._under_way[first.id] = lane
        message = {
            "type": "publish",
            "id": first.id,
            "key": lane.key,
            "messageId": first.message_id,
            "data": first.data,
        }
        size = frame_bytes(message)
        # The gateway would close the connection, with all that is on it.
        if size > request_bytes_max(self._limits):
            self.answered({"type": "error", "id": first.id, "code": "too_large", "message": f"it has {size} bytes"})
        else:
            self._send(message)

    def _remove(self, lane: _Lane, publish: _Publish) -> None:
        lane.queue.remove(publish)
        if publish.id is not None:
            self._under_way.pop(publish.id, None)
        publish.alarm.clear()
        if not lane.queue:
            lane.alarm.clear()
            self._lanes.pop(lane.key, None)
        self._on_change(lane.key)
        self._flush(lane)

    def _succeed(self, lane: _Lane, publish: _Publish, kept: dict[str, Any], epoch: str) -> None:
        if not publish.future.done():
            position = Position(epoch, kept["seq"])
            is_duplicate = kept.get("duplicate", False)
            publish.future.set_result(Published(publish.message_id, position, kept["at"] / 1_000, is_duplicate))
        self._remove(lane, publish)

    def _fail(self, lane: _Lane, publish: _Publish, error: KeycastError) -> None:
        if not publish.future.done():
            # An answer to a later try says nothing of an earlier one.
            code = "publish_unknown" if publish.is_unknown else error.code
            told = KeycastError(code, error.message, lane.key, error.retry_after, reason=error.reason)
            told.message_id = publish.message_id
            told.kept = _KEPT.get(code, False)
            publish.future.set_exception(told)
        self._remove(lane, publish)
