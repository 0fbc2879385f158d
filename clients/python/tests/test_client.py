"""What the transcripts, which are for every language, cannot say: handles, loops, listeners and cancellation here."""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import re
import traceback
from collections.abc import Awaitable
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from keycast import ConnectionState, Keycast, KeycastError, Value, connect
from keycast.connection.codes import FINAL_CLOSE_CODES
from world import WELCOME, Setup, World, run


async def collect(handle: Value, values: list[Any]) -> None:
    async for state in handle:
        values.append(state.value)


@pytest.mark.parametrize("heartbeat_ms", [0, -1, 0.001])
def test_a_heartbeat_of_a_moment_counts_as_25_s(heartbeat_ms: float) -> None:
    async def look() -> None:
        world = World()
        Keycast("ws://gateway/ws", world)
        world.socket.say({**WELCOME, "heartbeatMs": heartbeat_ms})
        world.deeds.clear()
        await world.pass_ms(24_999)
        assert world.deeds == []
        await world.pass_ms(1)
        assert world.deeds == [{"out": {"type": "ping", "id": "ping"}}]

    asyncio.run(look())


@pytest.mark.parametrize(
    "field",
    ['"retryAfterMs":{}', '"retryAfterMs":1e999', '"retryAfterMs":' + "9" * 400, '"code":7', '"key":[]', '"id":{}'],
)
def test_a_message_whose_fields_are_none_ends_the_session_at_once(field: str) -> None:
    async def look() -> None:
        world = World()
        keycast = Keycast("ws://gateway/ws", world)
        world.socket.say(WELCOME)
        world.socket.on_message('{"type":"error","code":"rate_limited","message":"m",' + field + "}")
        assert (keycast.state.name, keycast.state.reason) == ("waiting", "the gateway sent what cannot be read")

    asyncio.run(look())


@run
async def test_a_loop_gives_what_is_known_then_the_latest(setup: Setup) -> None:
    doc = setup.keycast.value("a:1")
    await setup.value("v1", "1")
    values: list[Any] = []
    loop = asyncio.create_task(collect(doc, values))
    await setup.world.settle()
    assert values == [1]
    message = {"type": "value", "key": "a:1", "contentType": "application/json"}
    for n in (2, 3):
        setup.world.socket.say({**message, "version": f"v{n}"}, str(n).encode())
    await setup.world.settle()
    assert values == [1, 3]
    doc.close()
    await loop


@run
async def test_a_loop_raises_the_error_that_ends_the_subscription(setup: Setup) -> None:
    loop = asyncio.create_task(collect(setup.keycast.value("a:1"), []))
    await setup.world.settle()
    setup.world.socket.say({"type": "error", "key": "a:1", "code": "unknown_namespace", "message": "no such"})
    with pytest.raises(KeycastError, match="no such") as raised:
        await loop
    assert raised.value.key == "a:1"


@run
async def test_closing_the_client_ends_loops_and_fails_gets(setup: Setup) -> None:
    loop = asyncio.create_task(collect(setup.keycast.value("a:1"), []))
    get = setup.keycast.get("b:1")
    await setup.world.settle()
    setup.keycast.close()
    await loop
    with pytest.raises(KeycastError) as raised:
        await get
    assert raised.value.code == "closed"
    assert setup.world.timers == []


@run
async def test_a_get_that_is_cancelled_is_not_asked_again(setup: Setup) -> None:
    get = setup.keycast.get("a:1")
    get.cancel()
    setup.world.socket.lose(1006)
    setup.world.deeds.clear()
    await setup.world.pass_ms(1_000)
    setup.welcome()
    assert setup.world.deeds == [{"dials": "ws://gateway/ws"}]


@run
async def test_gets_that_are_given_up_while_there_is_no_connection_leave_nothing(setup: Setup) -> None:
    setup.world.socket.lose(1006)
    kept = setup.keycast.get("a:1")
    for _ in range(100):
        setup.keycast.get("a:1").cancel()
    await setup.world.settle()
    assert len(setup.keycast._calls._queue) == 1
    setup.keycast.close()
    with pytest.raises(KeycastError):
        await kept


@run
async def test_a_request_that_is_no_json_fails_and_ends_no_session(setup: Setup) -> None:
    room = setup.keycast.room("room:1", follow=False)
    with pytest.raises(TypeError):
        await room.history(limit=cast(int, Fraction(1)))
    for _ in range(2):
        with pytest.raises(TypeError):
            await room.join(cast(str, b"Ann"))
    with pytest.raises(TypeError):
        await room.publish(1, message_id=cast(str, b"1" * 16))
    setup.world.socket.lose(1006)
    await setup.world.pass_ms(1_000)
    setup.welcome()
    assert setup.keycast.state.name == "open"
    assert setup.world.reported == []


@run
async def test_an_error_that_is_raised_again_keeps_no_trace_of_the_times_before(setup: Setup) -> None:
    """A program that goes on after it would hold ever more, and log ever longer traces."""
    async def trace_of(failing: Awaitable[Any]) -> int:
        with pytest.raises(KeycastError) as raised:
            await failing
        return len(traceback.extract_tb(raised.value.__traceback__))

    doc, room = setup.keycast.value("a:1"), setup.keycast.room("room:1")
    await setup.world.settle()
    setup.world.socket.lose(4003)
    assert setup.keycast.state.name == "closed"
    assert len({await trace_of(setup.keycast.get("a:1")) for _ in range(3)}) == 1
    assert len({await trace_of(anext(aiter(doc))) for _ in range(3)}) == 1
    assert len({await trace_of(anext(room)) for _ in range(3)}) == 1


@run
async def test_a_listener_that_reads_a_cancelled_future_does_not_end_the_connection(setup: Setup) -> None:
    cancelled = setup.world.future()
    cancelled.cancel()
    doc = setup.keycast.value("a:1")
    doc.on_change(lambda _: cancelled.result())
    await setup.value("v1", "1")
    assert [type(error) for error in setup.world.reported] == [asyncio.CancelledError]
    assert setup.keycast.state.name == "open"


@run
async def test_a_value_nested_5000_deep_is_an_error_where_it_is_read_and_nothing_else_ends(setup: Setup) -> None:
    doc = setup.keycast.value("a:1")
    await setup.value("v1", "[" * 5_000 + "]" * 5_000)
    with pytest.raises(KeycastError) as raised:
        _ = doc.state.value
    assert (raised.value.code, raised.value.key) == ("invalid_content", "a:1")
    await setup.value("v2", "2")
    assert doc.state.value == 2
    assert setup.world.reported == []


@run
async def test_a_message_nested_5000_deep_ends_the_connection_and_it_comes_back(setup: Setup) -> None:
    await setup.world.settle()
    setup.world.socket.on_message('{"type":' + "[" * 5_000 + "]" * 5_000 + "}")
    assert setup.keycast.state.name == "waiting"
    await setup.world.pass_ms(1_000)
    setup.welcome()
    assert setup.keycast.state.name == "open"


@run
async def test_a_listener_that_fails_stops_nobody(setup: Setup) -> None:
    doc = setup.keycast.value("a:1")
    seen: list[Any] = []
    doc.on_change(lambda state: seen.append(1 / 0))
    remove = doc.on_change(lambda state: seen.append(state.value))
    await setup.value("v1", "1")
    assert seen == [1]
    assert [type(error) for error in setup.world.reported] == [ZeroDivisionError]
    remove()
    await setup.value("v2", "2")
    assert seen == [1]


@run
async def test_a_listener_is_not_told_of_a_state_that_another_has_ended(setup: Setup) -> None:
    """The older state would be the last that it hears."""
    told: list[tuple[str, str]] = []

    def close(state: ConnectionState) -> None:
        told.append(("first", state.name))
        if state.name == "waiting":
            setup.keycast.close()

    setup.keycast.on_state(close)
    setup.keycast.on_state(lambda state: told.append(("second", state.name)))
    await setup.world.settle()
    told.clear()
    setup.world.socket.lose(1006)
    assert told == [("first", "waiting"), ("first", "closed"), ("second", "closed")]


@run
async def test_an_integer_of_more_digits_than_python_reads_is_a_float(setup: Setup) -> None:
    doc = setup.keycast.value("a:1")
    await setup.value("v1", f'{{"most":{"1" * 4_300},"more":{"1" * 4_301}}}')
    assert doc.state.value == {"most": int("1" * 4_300), "more": math.inf}


@run
async def test_the_state_is_the_same_object_until_something_changes(setup: Setup) -> None:
    doc = setup.keycast.value("a:1")
    await setup.value("v1", '{"n":1}')
    state = doc.state
    await setup.value("v1", '{"n":1}')
    assert doc.state is state
    assert state.value is state.value
    assert (state.content_type, state.size_bytes, state.changed_at) == ("application/json", 7, 0)
    setup.world.socket.say({"type": "stale", "key": "a:1", "code": "backend_timeout", "sinceMs": 500})
    assert doc.state.stale is not None
    assert (doc.state.stale.code, doc.state.stale.asked_at) == ("backend_timeout", -0.5)
    assert state.stale is None


@run
async def test_an_error_with_which_the_subscription_stands_ends_nothing(setup: Setup) -> None:
    """Whether it stands is said, not to be told from a time to wait."""
    doc = setup.keycast.value("a:1")
    await setup.value("v1", "1")
    setup.world.socket.say({"type": "error", "key": "a:1", "subscribed": True, "code": "backend_error"})
    error = doc.state.error
    assert error is not None
    assert (error.code, error.subscribed, error.retry_after) == ("backend_error", True, None)
    await setup.value("v2", "2")
    assert (doc.state.value, doc.state.error) == (2, None)


class Tokens:
    """An application's function for tokens, and a client that uses it."""

    def __init__(self) -> None:
        self.world = World()
        self.asked: list[asyncio.Future[str]] = []
        self.keycast = Keycast("ws://gateway/ws", self.world, token=self.give)

    async def give(self) -> str:
        self.asked.append(self.world.future())
        return await self.asked[-1]

    async def open(self) -> None:
        await self.world.settle()
        self.asked[-1].set_result("t1")
        await self.world.settle()
        self.world.socket.say(WELCOME)
        self.world.socket.say({"type": "authed", "id": "auth", "user": "ann", "expiresInMs": 3_600_000})
        assert self.keycast.state.user == "ann"
        self.world.deeds.clear()


def test_a_session_whose_token_has_expired_is_given_another() -> None:
    async def test() -> None:
        tokens = Tokens()
        await tokens.open()
        tokens.world.socket.say({"type": "error", "code": "token_expired", "message": "expired"})
        await tokens.world.settle()
        tokens.asked[-1].set_result("t2")
        await tokens.world.settle()
        assert tokens.world.deeds == [{"out": {"type": "auth", "id": "auth", "token": "t2"}}]

    asyncio.run(test())


def test_a_gateway_that_says_token_expired_again_and_again_has_the_application_asked_once_at_a_time() -> None:
    async def test() -> None:
        tokens = Tokens()
        await tokens.open()
        before = len(tokens.asked)
        for _ in range(100):
            tokens.world.socket.say({"type": "error", "code": "token_expired", "message": "expired"})
        await tokens.world.settle()
        assert len(tokens.asked) == before + 1
        tokens.keycast.close()
        await tokens.world.settle()

    asyncio.run(test())


def test_a_function_for_tokens_that_never_ends_is_not_called_ever_more_often_at_once() -> None:
    async def test() -> None:
        tokens = Tokens()
        for _ in range(5):
            await tokens.world.pass_ms(40_000)
        assert len(tokens.asked) >= 5
        assert sum(not asked.done() for asked in tokens.asked) <= 2
        tokens.keycast.close()
        await tokens.world.settle()

    asyncio.run(test())


def test_closing_the_client_cancels_the_function_for_tokens() -> None:
    async def test() -> None:
        tokens = Tokens()
        await tokens.world.settle()
        tokens.keycast.close()
        await tokens.world.settle()
        assert tokens.asked[0].cancelled()
        assert tokens.world.timers == []

    asyncio.run(test())


@pytest.mark.parametrize("url", ["", "/ws", "ftp://host/ws", "ws://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        connect(url)


def test_the_close_codes_are_those_of_the_other_client() -> None:
    codes = Path(__file__).parents[3] / "packages/client/keycast/connection/codes.js"
    listed = re.search(r"finalCloseCodes = \[([\d, ]+)\]", codes.read_text())
    assert listed is not None
    assert {int(code) for code in listed[1].split(",")} == FINAL_CLOSE_CODES


def test_an_error_names_its_code_and_its_key() -> None:
    error = KeycastError("unauthenticated", "this needs a token", "nosuch:7")
    assert str(error) == "unauthenticated: nosuch:7: this needs a token"
    assert str(KeycastError("closed", "closed by this client")) == "closed: closed by this client"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@run
async def test_the_reason_why_there_is_no_connection_is_logged_once(setup: Setup) -> None:
    class Records(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    lines: list[str] = []
    handler = Records()
    logging.getLogger("keycast").addHandler(handler)
    # One that was open is back soon.
    setup.world.socket.lose(1006)
    for wait_ms, reason in ((1_000, "HTTP 404"), (2_000, "HTTP 404"), (4_000, "HTTP 503")):
        await setup.world.pass_ms(wait_ms)
        setup.world.socket._on_close(1006, reason)
    logging.getLogger("keycast").removeHandler(handler)
    assert lines == [
        "no connection to ws://gateway/ws, it is tried again: HTTP 404",
        "no connection to ws://gateway/ws, it is tried again: HTTP 503",
    ]


def test_a_gateway_that_closes_at_once_is_named_as_the_reason() -> None:
    async def test() -> None:
        def drop(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(drop, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://user:secret@127.0.0.1:{port}/ws?secret") as keycast:
            waiting = asyncio.Event()
            keycast.on_state(lambda state: waiting.set() if state.name == "waiting" else None)
            await asyncio.wait_for(waiting.wait(), 30)
            assert keycast.state.reason == "the gateway closed before it answered"
        server.close()

    asyncio.run(test())
