"""The rooms of the made-up gateway: kept in memory, in order, as long as the fake lives."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

EPOCH = "fake"
_HISTORY_DEFAULT = 50
_HISTORY_MAX = 500
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")

#: By which the client under test is told from others in a room.
_ME = "me"


class FakeRoom:
    def __init__(self) -> None:
        #: As the protocol writes them.
        self.messages: list[dict[str, Any]] = []
        self.members: list[dict[str, Any]] = []
        #: Of the latest message.
        self.seq = 0
        self.rev = 0
        #: What each publish is answered with, where that is an error.
        self.refusal: dict[str, Any] | None = None

    @property
    def oldest(self) -> int:
        return self.seq - len(self.messages) + 1


class FakeRooms:
    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._rooms: dict[str, FakeRoom] = {}
        #: Those that are subscribed to, and whether with presence.
        self.watched: dict[str, bool] = {}

    def room(self, key: str) -> FakeRoom:
        return self._rooms.setdefault(key, FakeRoom())

    def keep(self, key: str, data: Any, sender: str | None, message_id: str | None) -> dict[str, Any]:
        room = self.room(key)
        room.seq += 1
        known = {"from": sender, "messageId": message_id}
        message = {
            "seq": room.seq,
            "at": round(time.time() * 1_000),
            **{field: value for field, value in known.items() if value is not None},
            "data": data,
        }
        room.messages.append(message)
        self._tell(key, message)
        return message

    def set_members(self, key: str, names: Iterable[str]) -> None:
        room = self.room(key)
        me = [member for member in room.members if member["id"] == _ME]
        room.members = [*({"id": name, "name": name, "tabs": 1} for name in names), *me]
        self._tell_members(key)

    def subscribe(self, request_id: int, entries: list[Any]) -> None:
        for entry in entries:
            each = self._begin(entry if isinstance(entry, dict) else {"key": entry})
            key = each["key"]
            self._say({"type": "subscribed", "id": request_id, "keys": [each]})
            for message in list(self.room(key).messages):
                if message["seq"] > each["seq"] - each["count"]:
                    self._tell(key, message)
            if self.watched.get(key):
                self._tell_members(key)

    def answer(self, request: dict[str, Any]) -> bool:
        """Answers a request about one room, and says whether it was one."""
        match request["type"]:
            case "publish":
                self._publish(request)
            case "history":
                self._history(request)
            case "join":
                self._join(request)
            case "leave":
                room = self.room(request["key"])
                room.members = [member for member in room.members if member["id"] != _ME]
                self._say({"type": "ok", "id": request["id"]})
                self._tell_members(request["key"])
            case _:
                return False
        return True

    def _begin(self, entry: dict[str, Any]) -> dict[str, Any]:
        key, after = entry["key"], entry.get("after")
        room = self.room(key)
        self.watched[key] = entry.get("presence", False)
        recovered, count = False, 0
        if after is None:
            count = min(entry.get("last", 0), len(room.messages))
        elif after["epoch"] == EPOCH and room.oldest - 1 <= after["seq"] <= room.seq:
            recovered, count = True, room.seq - after["seq"]
        return {
            "key": key,
            "epoch": EPOCH,
            "seq": room.seq,
            "oldest": room.oldest,
            "recovered": recovered,
            "count": count,
        }

    def _publish(self, request: dict[str, Any]) -> None:
        room, message_id, data = self.room(request["key"]), request["messageId"], request["data"]
        there = next((message for message in room.messages if message.get("messageId") == message_id), None)
        if room.refusal:
            return self._refuse(request, **room.refusal)
        if not _MESSAGE_ID.fullmatch(message_id):
            return self._refuse(request, "bad_message", '"messageId" must be 16 to 64 characters of A-Z a-z 0-9 _ -')
        if there and there["data"] != data:
            return self._refuse(request, "id_conflict")
        kept = there or self.keep(request["key"], data, None, message_id)
        answer = {"type": "published", "id": request["id"], "key": request["key"], "epoch": EPOCH}
        self._say({**answer, "seq": kept["seq"], "at": kept["at"], "duplicate": there is not None})

    def _history(self, request: dict[str, Any]) -> None:
        room, after, before = self.room(request["key"]), request.get("after"), request.get("before")
        if request.get("epoch", EPOCH) != EPOCH:
            return self._refuse(request, "other_epoch")
        limit = min(request.get("limit", _HISTORY_DEFAULT), _HISTORY_MAX)
        found = [
            message
            for message in room.messages
            if (after is None or message["seq"] > after) and (before is None or message["seq"] < before)
        ]
        part = found[-limit:] if after is None else found[:limit]
        answer = {"type": "history", "id": request["id"], "key": request["key"], "epoch": EPOCH, "messages": part}
        bounds = {"oldest": room.oldest, "newest": room.seq, "more": len(part) < len(found)}
        self._say({**answer, **bounds, "truncated": after is not None and after < room.oldest - 1})

    def _join(self, request: dict[str, Any]) -> None:
        room, name = self.room(request["key"]), request["name"]
        others = [member for member in room.members if member["id"] != _ME]
        if any(member["name"] == name for member in others):
            return self._refuse(request, "name_taken")
        room.members = [*others, {"id": _ME, "name": name, "tabs": 1}]
        joined = {"type": "joined", "id": request["id"], "key": request["key"], "name": name}
        self._say({**joined, "claim": request["claim"]})
        self._tell_members(request["key"])

    def _refuse(
        self, request: dict[str, Any], code: str, message: str | None = None, retry_after: float | None = None
    ) -> None:
        key = request["key"]
        error = {"type": "error", "id": request["id"], "key": key, "code": code, "subscribed": key in self.watched}
        self._say(error_message(error, message, retry_after))

    def _tell(self, key: str, message: dict[str, Any]) -> None:
        if key in self.watched:
            self._say({"type": "message", "key": key, **message})

    def _tell_members(self, key: str) -> None:
        room = self.room(key)
        room.rev += 1
        if self.watched.get(key):
            count = len(room.members)
            self._say({"type": "members", "key": key, "rev": room.rev, "count": count, "members": room.members})


def error_message(error: dict[str, Any], message: str | None, retry_after: float | None) -> dict[str, Any]:
    said = {**error, "message": error["code"] if message is None else message}
    return said if retry_after is None else {**said, "retryAfterMs": retry_after * 1_000}
