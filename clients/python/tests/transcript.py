"""Runs one transcript against the client: packages/client/transcripts/README.md says what each step means."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from keycast import History, Joined, Keycast, KeycastError, Message, Position, Published, Room, TokenRefused, Value
from world import World

_EXPECTATIONS = {"dials", "out", "hangs", "asks", "told", "state", "holds", "answers", "open"}


#: Another gateway than the transcript's: gives what it sends in place of a message, None where it sends nothing.
Say = Callable[[dict[str, Any], bytes | None], str | bytes | None]


async def run_transcript(text: str, world: World | None = None, say: Say | None = None) -> Keycast:
    """Gives the client as the transcript leaves it. Raises AssertionError where it does not do as the transcript says.

    With another gateway it need not; what it raises is raised all the same.
    """
    run = _Run(world or World(), say)
    await run.run(text)
    return run.keycast


class _Run:
    def __init__(self, world: World, say: Say | None) -> None:
        self._world = world
        self._say = say
        self.keycast: Keycast
        self._handles: dict[str, Value] = {}
        self._rooms: dict[str, Room] = {}
        self._answers: dict[str, asyncio.Future[Any]] = {}
        #: Of the application's function for tokens, as it was called last.
        self._token: asyncio.Future[str] | None = None
        #: The values of the names with `$`.
        self._bound: dict[str, Any] = {}

    async def run(self, text: str) -> None:
        steps = [json.loads(line) for line in text.splitlines()][1:]
        is_same_turn = False
        for number, (step, following) in enumerate(zip(steps, [*steps[1:], {}]), start=2):
            try:
                if _EXPECTATIONS & step.keys():
                    # With another gateway it is only looked for what names stand for.
                    if not self._say or "out" in step:
                        self._expect(step)
                else:
                    if not is_same_turn and not self._say:
                        self._nothing_else()
                    self._act(step)
                is_same_turn = "do" in step and "do" in following
                if "pass" in step:
                    await self._world.pass_ms(step["pass"])
                elif not is_same_turn:
                    await self._world.settle()
            except AssertionError as error:
                if self._say:
                    continue
                raise AssertionError(f"line {number}, {json.dumps(step)}: {error}") from error
        if self._say:
            for future in self._answers.values():
                # Nobody looks at how it ends.
                future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            return
        self._nothing_else()
        assert self._world.reported == []

    def _act(self, step: dict[str, Any]) -> None:
        match step:
            case {"do": deed}:
                self._do(deed, step)
            case {"in": message} if self._say:
                said = self._say(self._filled(message), _body_of(step))
                if said is not None:
                    self._world.socket.on_message(said)
            case {"in": message}:
                self._world.socket.say(self._filled(message), _body_of(step))
            case {"garbage": garbage}:
                self._world.socket.on_message(garbage)
            case {"lost": code}:
                self._world.socket.lose(code)
            case {"gives": token}:
                # A client that was closed wants it no more.
                if not self._asked().cancelled():
                    self._asked().set_result(token)
            case {"refuses": True}:
                self._asked().set_exception(TokenRefused())
            case {"fails": True}:
                self._asked().set_exception(OSError("the network failed"))
            case {"random": chance}:
                self._world.chance = chance
            case {"pass": _}:
                pass
            case _:
                raise AssertionError("there is no such step")

    def _do(self, deed: str, step: dict[str, Any]) -> None:
        match deed:
            case "connect":
                token = step.get("token")
                given = self._ask_for_token if token is True else token
                keep_forbidden = step.get("keepForbidden", False)
                self.keycast = Keycast("ws://gateway/ws", self._world, token=given, keep_forbidden=keep_forbidden)
            case "value":
                self._handles[step["as"]] = self.keycast.value(step["key"])
            case "room":
                self._open_room(step["as"], step)
            case "publish":
                deadline = step.get("deadlineMs", 30_000) / 1_000
                room = self._rooms[step["room"]]
                self._answers[step["as"]] = room.publish(
                    step["data"], message_id=step.get("messageId"), deadline=deadline
                )
            case "history":
                bounds = {name: _position(step[name]) for name in ("before", "after") if name in step}
                room = self._rooms[step["room"]]
                self._answers[step["as"]] = room.history(**bounds, limit=step.get("limit"))
            case "join":
                self._answers[step["as"]] = self._rooms[step["room"]].join(step["name"], step.get("claim"))
            case "leave":
                self._answers[step["as"]] = self._rooms[step["room"]].leave()
            case "close":
                (self._handles.get(step["as"]) or self._rooms[step["as"]]).close()
            case "get":
                self._answers[step["as"]] = self.keycast.get(step["key"])
            case "retry":
                (self._handles.get(step["as"]) or self._rooms[step["as"]]).retry()
            case "reconnect":
                self.keycast.reconnect()
            case "end":
                self.keycast.close()
            case _:
                raise AssertionError("there is no such deed")

    def _open_room(self, name: str, step: dict[str, Any]) -> None:
        options = {option: step[option] for option in ("last", "presence", "follow") if option in step}
        room = self.keycast.room(step["key"], after=_position(step.get("after")), **options)
        self._rooms[name] = room
        room.on_message(lambda message: self._world.deeds.append({"told": name, **_message(message)}))
        room.on_gap(
            lambda gap: self._world.deeds.append(
                {"told": name, "gap": gap.reason, "position": asdict(gap.position), "oldest": asdict(gap.oldest)}
            )
        )

    def _asked(self) -> asyncio.Future[str]:
        assert self._token and (self._token.cancelled() or not self._token.done()), "no token was asked for"
        return self._token

    async def _ask_for_token(self) -> str:
        self._world.deeds.append({"asks": True})
        self._token = self._world.future()
        return await self._token

    def _expect(self, step: dict[str, Any]) -> None:
        match step:
            case {"state": expected}:
                state = self.keycast.state
                known = {field: getattr(state, field) for field in expected if field != "retryInMs"}
                assert known == {field: expected[field] for field in known}, f"it is {known}"
                if "retryInMs" in expected:
                    assert state.retry_at is not None
                    retry_in_ms = round(state.retry_at * 1_000 - self._world.now_ms, 3)
                    assert retry_in_ms == expected["retryInMs"], f"the next try is in {retry_in_ms} ms"
            case {"holds": name, **expected} if name in self._rooms:
                shown = _room(self._rooms[name])
                assert {field: shown[field] for field in expected} == expected, f"it holds {shown}"
            case {"holds": name, **expected}:
                state = self._handles[name].state
                shown = {
                    "value": _plain(state.value),
                    "version": state.version,
                    "health": state.health,
                    "stale": state.stale.code if state.stale else False,
                    "error": state.error.code if state.error else None,
                }
                assert {field: shown[field] for field in expected} == expected, f"it holds {shown}"
            case {"open": name}:
                assert not self._answers[name].done(), "it has ended"
            case {"answers": name, **expected}:
                answer = _answer(self._answers[name])
                assert answer == expected, f"it is {answer}"
            case _:
                self._expect_deed(step)

    def _expect_deed(self, step: dict[str, Any]) -> None:
        name = next(name for name in step if name in _EXPECTATIONS)
        deed = next((deed for deed in self._world.deeds if name in deed), None)
        assert deed is not None, "it did not happen"
        self._world.deeds.remove(deed)
        if name == "dials":
            assert deed["dials"] == step["dials"], f"it dialled {deed}"
        if name == "hangs" and "code" in step:
            assert deed == step, f"it is {deed}"
        if name == "told":
            assert {field: deed.get(field) for field in step} == step, f"it was told {deed}"
        if name == "out":
            assert deed["out"] == self._filled(step["out"], deed["out"]), f"it sent {deed}"

    def _nothing_else(self) -> None:
        assert self._world.deeds == [], f"the client also did {self._world.deeds}"

    def _filled(self, pattern: dict[str, Any], actual: dict[str, Any] | None = None) -> dict[str, Any]:
        """Puts in what names stand for, and learns new ones from what was sent."""

        def fill(field: str, value: Any) -> Any:
            if not isinstance(value, str) or not value.startswith("$"):
                return value
            return self._bound.setdefault(value, (actual or {}).get(field))

        return {field: fill(field, value) for field, value in pattern.items()}


def _answer(future: asyncio.Future[Any]) -> dict[str, Any]:
    assert future.done(), "it has not ended"
    error = future.exception()
    if error is None:
        return {"value": _written(future.result())}
    assert isinstance(error, KeycastError), error
    return {"error": error.code}


def _written(value: Any) -> Any:
    """What a call gives, as transcripts write it: without what is a client's own choice."""
    match value:
        case Published():
            return {"position": asdict(value.position), "at": _ms(value.at), "duplicate": value.duplicate}
        case Joined():
            return {"name": value.name}
        case History():
            return {**asdict(value), "messages": [_message(message) for message in value.messages]}
    return _plain(value)


def _message(message: Message) -> dict[str, Any]:
    fields = {
        "position": asdict(message.position),
        "at": _ms(message.at),
        "from": message.sender,
        "messageId": message.message_id,
        "deleted": message.deleted or None,
        "deletes": [list(part) for part in message.deletes] or None,
        "data": message.data,
    }
    return {field: value for field, value in fields.items() if value is not None or field == "data"}


def _room(room: Room) -> dict[str, Any]:
    members = room.members.members
    return {
        "live": room.state.live,
        "health": room.state.health,
        "error": room.state.error.code if room.state.error else None,
        "position": asdict(room.position) if room.position else None,
        "pending": [message.data for message in room.pending],
        "joinedAs": room.state.joined_as,
        "count": room.members.count,
        "members": None if members is None else [member.name for member in members],
    }


def _position(given: dict[str, Any] | None) -> Position | None:
    return Position(**given) if given else None


def _ms(seconds: float) -> int:
    return round(seconds * 1_000)


def _body_of(step: dict[str, Any]) -> bytes | None:
    if "text" in step:
        return str(step["text"]).encode()
    return b64decode(step["base64"]) if "base64" in step else None


def _plain(value: Any) -> Any:
    return {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
