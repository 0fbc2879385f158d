"""The client under test, and the gateway that it believes to be connected to. The client is the real one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..client import Keycast
from ..values.version import version_of
from .environment import FakeEnvironment
from .rooms import FakeRooms, error_message

_LIMITS = {"messageBytes": 262_144, "keysPerSession": 5_000, "requestsPerSecond": 1_000}


class FakeKeycast:
    """Give `keycast` to what is tested, and play the backend and the other clients with the rest. Needs a running loop.

    Nothing here is awaited. A subscription goes out at the end of the turn of the loop in which it was made: await
    something before you look at `watched`.
    """

    def __init__(self, *, rooms: Iterable[str] = ("room", "user", "all")) -> None:
        """`rooms`: the namespaces whose keys are rooms."""
        self._room_namespaces = frozenset(rooms)
        #: The message, and the bytes behind it.
        self._values: dict[str, tuple[dict[str, Any], bytes]] = {}
        #: Errors and `stale`, which are said after the key's value.
        self._troubles: dict[str, dict[str, Any]] = {}
        self._watched: dict[str, None] = {}
        #: Gets of keys of which nothing is known yet: id and key.
        self._gets: list[tuple[int, str]] = []
        self._rooms = FakeRooms(self._say)
        self._environment = FakeEnvironment(self._answer, self._forget_session)
        #: The client to hand to what is tested.
        self.keycast = Keycast("ws://fake/ws", self._environment, self._environment.ended)
        self._welcome()

    @property
    def watched(self) -> tuple[str, ...]:
        """The keys that are subscribed to."""
        return (*self._watched, *self._rooms.watched)

    def set(self, key: str, value: Any, content_type: str | None = None) -> None:
        """Gives a key a value: bytes as they are, with a content type the text of a string, else JSON.

        An equal value has the same version, and is no change.
        """
        default = "application/json"
        if isinstance(value, bytes):
            body, default = value, "application/octet-stream"
        else:
            body = (json.dumps(value) if content_type is None else str(value)).encode()
        named = content_type or default
        line = {"type": "value", "key": key, "version": version_of(body, named), "contentType": named}
        self._values[key] = (line, body)
        self._troubles.pop(key, None)
        if key in self._watched:
            self._tell(key)
        self._answer_gets(key)

    def fail(self, key: str, code: str, *, message: str | None = None, retry_after: float | None = None) -> None:
        """Lets a key fail. Without `retry_after`, in seconds, its subscription ends."""
        error = error_message({"type": "error", "key": key, "code": code}, message, retry_after)
        if code == "not_found":
            self._values.pop(key, None)
        self._troubles[key] = error
        if key in self._watched:
            self._tell_trouble(key)
        self._answer_gets(key, error)

    def stale(self, key: str, since: float = 0.0) -> None:
        """Lets a key's value be old for so many seconds, until it is set."""
        self._troubles[key] = {"type": "stale", "key": key, "sinceMs": since * 1_000, "code": "backend_timeout"}
        if key in self._watched:
            self._tell_trouble(key)

    def publish(self, key: str, data: Any, *, sender: str | None = None, message_id: str | None = None) -> None:
        """Somebody else publishes into a room."""
        self._rooms.keep(key, json.loads(json.dumps(data)), sender, message_id)

    def messages(self, key: str) -> list[Any]:
        """The data of all that a room holds."""
        return [message["data"] for message in self._rooms.room(key).messages]

    def trim(self, key: str, count: int) -> None:
        """Lets a room hold no more than its newest messages."""
        messages = self._rooms.room(key).messages
        del messages[: max(0, len(messages) - count)]

    def refuse_publishes(self, key: str, code: str | None, *, retry_after: float | None = None) -> None:
        """Lets what is published into a room fail, until this is called with None.

        With `retry_after`, and after `publish_unknown`, the client tries again until the deadline: `pass_time`.
        """
        self._rooms.room(key).refusal = None if code is None else {"code": code, "retry_after": retry_after}

    def set_members(self, key: str, names: Iterable[str]) -> None:
        """Says who else is in a room."""
        self._rooms.set_members(key, names)

    def disconnect(self) -> None:
        """Loses the connection, until `reconnect`."""
        self._environment.socket.lose()

    def reconnect(self) -> None:
        """Ends a `disconnect`: the client connects and resumes."""
        self.keycast.reconnect()
        self._welcome()

    def pass_time(self, seconds: float) -> None:
        """Lets so much time pass for the client: deadlines end, and what was refused for now is tried again."""
        self._environment.pass_ms(seconds * 1_000)

    def _welcome(self) -> None:
        self._say({"type": "welcome", "session": "fake", "heartbeatMs": 25_000, "limits": _LIMITS})

    def _forget_session(self) -> None:
        self._watched.clear()
        self._rooms.watched.clear()
        self._gets.clear()

    def _say(self, message: dict[str, Any], body: bytes | None = None) -> None:
        self._environment.socket.say(message, body)

    def _answer(self, request: dict[str, Any]) -> None:
        """Does as a gateway does with a request."""
        if self._rooms.answer(request):
            return
        match request:
            case {"type": "get", "id": request_id, "key": key}:
                self._gets.append((request_id, key))
                trouble = self._troubles.get(key)
                self._answer_gets(key, trouble if trouble and trouble["type"] == "error" else None)
            case {"type": "ping", "id": request_id}:
                self._say({"type": "pong", "id": request_id, "count": 1})
            case {"type": "unsubscribe", "id": request_id, "keys": keys}:
                for key in keys:
                    self._watched.pop(key, None)
                    self._rooms.watched.pop(key, None)
                self._say({"type": "ok", "id": request_id})
            case {"type": "subscribe", "id": request_id, "keys": entries}:
                self._subscribe(request_id, entries)

    def _subscribe(self, request_id: int, entries: list[Any]) -> None:
        names = [entry["key"] if isinstance(entry, dict) else entry for entry in entries]
        if any(self._is_room(name) for name in names):
            # The client asks for values and for rooms apart.
            return self._rooms.subscribe(request_id, entries)
        self._watched.update(dict.fromkeys(names))
        self._say({"type": "subscribed", "id": request_id, "keys": [{"key": name} for name in names]})
        for name in names:
            self._tell(name)

    def _is_room(self, key: str) -> bool:
        return key.partition(":")[0] in self._room_namespaces

    def _tell(self, key: str) -> None:
        """Says how a key stands to its subscriber."""
        if key in self._values:
            self._say(*self._values[key])
        if key in self._troubles:
            self._tell_trouble(key)

    def _tell_trouble(self, key: str) -> None:
        trouble = self._troubles[key]
        is_over = trouble["type"] == "error" and "retryAfterMs" not in trouble
        if is_over:
            self._watched.pop(key, None)
        self._say({**trouble, "subscribed": not is_over} if trouble["type"] == "error" else trouble)

    def _answer_gets(self, key: str, error: dict[str, Any] | None = None) -> None:
        """Answers those who wait for a key. A value that is there goes before an error."""
        asked = [request_id for request_id, name in self._gets if name == key]
        if key not in self._values and error is None:
            return
        self._gets = [get for get in self._gets if get[1] != key]
        for request_id in asked:
            if key in self._values:
                line, body = self._values[key]
                self._say({**line, "id": request_id}, body)
            else:
                self._say({**(error or {}), "id": request_id, "subscribed": key in self._watched})
