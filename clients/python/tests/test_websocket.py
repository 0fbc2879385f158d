"""Connections of a real network: the other end may read nothing, and say what the client fails at."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from keycast import Keycast, KeycastError, connect

WELCOME = json.dumps(
    {
        "type": "welcome",
        "session": "s",
        "heartbeatMs": 25_000,
        "limits": {"messageBytes": 262_144, "keysPerSession": 5_000, "requestsPerSecond": 1_000},
    }
)

#: Far more than the operating system takes for an end that reads nothing.
MESSAGES = 60
MESSAGE = "x" * 200_000

#: No test waits so long, unless it fails.
PATIENCE_SECONDS = 10


@asynccontextmanager
async def gateway(handle: Callable[[ServerConnection], Coroutine[Any, Any, None]]) -> AsyncIterator[str]:
    """Listens with a small buffer, and gives its URL."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    listening.bind(("127.0.0.1", 0))
    subprotocols = [Subprotocol("keycast.v1.bytes")]
    # One that reads nothing does not notice either that the client is gone.
    async with serve(handle, sock=listening, subprotocols=subprotocols, close_timeout=0.05):
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}/ws"


async def is_open(keycast: Keycast) -> None:
    opened = asyncio.Event()
    keycast.on_state(lambda state: opened.set() if state.name == "open" else None)
    await asyncio.wait_for(opened.wait(), PATIENCE_SECONDS)


async def read_nothing(peer: ServerConnection) -> None:
    await peer.send(WELCOME)
    peer.transport.pause_reading()
    await peer.wait_closed()


def publish_much(keycast: Keycast) -> None:
    """More than is sent before somebody reads."""
    for number in range(MESSAGES):
        published = keycast.room(f"room:{number}", follow=False).publish(MESSAGE)
        # None of them has an outcome.
        published.add_done_callback(lambda future: future.exception())


def test_closing_ends_soon_where_the_other_end_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keycast.connection.websocket._CLOSE_SECONDS", 0.05)

    async def use(url: str) -> None:
        async with connect(url) as keycast:
            await is_open(keycast)
            publish_much(keycast)

    async def test() -> None:
        async with gateway(read_nothing) as url:
            await asyncio.wait_for(use(url), PATIENCE_SECONDS)

    asyncio.run(test())


def test_a_program_that_closes_nothing_ends_soon_where_the_other_end_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keycast.connection.websocket._CLOSE_SECONDS", 0.05)

    async def test() -> None:
        async with gateway(read_nothing) as url:
            keycast = connect(url)
            await is_open(keycast)
            publish_much(keycast)
            # The writer is held up by then.
            for _ in range(10 * MESSAGES):
                await asyncio.sleep(0)
            ours = {task for task in asyncio.all_tasks() if task.get_name() == "keycast"}
            assert len(ours) == 1
            # As `asyncio.run` does at its end.
            for task in ours:
                task.cancel()
            _, late = await asyncio.wait(ours, timeout=PATIENCE_SECONDS)
            assert late == set()
            keycast.close()

    asyncio.run(test())


def test_a_connection_whose_message_the_client_fails_at_is_given_up_and_the_failure_is_told() -> None:
    """The client must not take it for one that is open, and wait on it."""
    sessions = 0
    codes: list[int | None] = []

    async def handle(peer: ServerConnection) -> None:
        nonlocal sessions
        sessions += 1
        await peer.send(WELCOME)
        if sessions == 1:
            await peer.send('{"type":"closing"}')
        await peer.wait_closed()
        codes.append(peer.close_code)

    async def test() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        async with gateway(handle) as url, connect(url) as keycast:
            waiting = asyncio.Event()
            keycast.on_state(lambda state: waiting.set() if state.name == "waiting" else None)
            await asyncio.wait_for(waiting.wait(), PATIENCE_SECONDS)
            assert keycast.state.reason == "this client failed at a message"
            assert [repr(context["exception"]) for context in told] == ["KeyError('reconnectAfterMs')"]
            keycast.reconnect()
            await is_open(keycast)
        # 4000 leaves no room that was joined.
        assert codes == [4000, 1000]

    asyncio.run(test())


def test_a_get_of_what_cannot_be_read_fails_and_the_connection_stays() -> None:
    async def handle(peer: ServerConnection) -> None:
        await peer.send(WELCOME)
        async for text in peer:
            get = json.loads(text)
            line = {"type": "value", "id": get["id"], "key": get["key"], "version": "v"}
            body = b"{" if get["key"] == "broken:1" else b"1"
            await peer.send(json.dumps({**line, "contentType": "application/json"}).encode() + b"\n" + body)

    async def test() -> None:
        async with gateway(handle) as url, connect(url) as keycast:
            with pytest.raises(KeycastError) as raised:
                await asyncio.wait_for(keycast.get("broken:1"), PATIENCE_SECONDS)
            assert (raised.value.code, raised.value.key) == ("invalid_content", "broken:1")
            assert isinstance(raised.value.__cause__, ValueError)
            assert await asyncio.wait_for(keycast.get("whole:1"), PATIENCE_SECONDS) == 1

    asyncio.run(test())


def test_a_wss_address_is_reached_with_tls_and_the_certificates_of_the_system_unless_others_are_given() -> None:
    async def test() -> None:
        first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            first.set_result(await reader.read(1))
            writer.close()

        server = await asyncio.start_server(hear, "127.0.0.1", 0)
        async with connect(f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws"):
            # The type of a TLS handshake.
            assert await asyncio.wait_for(first, PATIENCE_SECONDS) == b"\x16"
        server.close()

    asyncio.run(test())


def test_an_end_that_takes_no_subprotocol_is_none_for_its_values_could_not_be_read() -> None:
    async def handle(peer: ServerConnection) -> None:
        await peer.send(WELCOME)
        await peer.wait_closed()

    async def test() -> None:
        async with (
            serve(handle, "127.0.0.1", 0) as server,
            connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws") as keycast,
        ):
            waiting = asyncio.Event()
            keycast.on_state(lambda state: waiting.set() if state.name == "waiting" else None)
            await asyncio.wait_for(waiting.wait(), PATIENCE_SECONDS)
            assert "no subprotocol was taken" in str(keycast.state.reason)

    asyncio.run(test())


def test_no_redirect_is_followed_for_the_token_would_go_there() -> None:
    reached: list[str] = []

    async def handle(peer: ServerConnection) -> None:
        await peer.send(WELCOME)
        async for text in peer:
            reached.append(str(text))

    async def test() -> None:
        async with gateway(handle) as elsewhere:

            def redirect(_: ServerConnection, request: Request) -> Response:
                return Response(307, "Temporary Redirect", Headers(Location=elsewhere))

            async with (
                serve(handle, "127.0.0.1", 0, process_request=redirect) as server,
                connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws", token="secret") as keycast,
            ):
                states: asyncio.Queue[str] = asyncio.Queue()
                keycast.on_state(lambda state: states.put_nowait(state.name))
                while await asyncio.wait_for(states.get(), PATIENCE_SECONDS) != "waiting" and not reached:
                    pass
                assert keycast.state.reason == "server rejected WebSocket connection: HTTP 307"
        assert reached == []

    asyncio.run(test())
