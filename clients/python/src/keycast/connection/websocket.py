"""A connection as the client wants it, made with the package `websockets`: nothing to await, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.typing import Subprotocol

from ..environment import LoopEnvironment, Socket

#: A gateway that is gone answers no close, and one that reads nothing lets none be sent.
_CLOSE_SECONDS = 2

_ABNORMAL = 1006

#: A namespace's values have 64 MiB at most, and a line before them.
_MESSAGE_BYTES_MAX = 65 * 1024**2


class NetworkEnvironment(LoopEnvironment):
    """The running loop, and sockets in it."""

    def __init__(self, ssl: SSLContext | None) -> None:
        super().__init__()
        self._ssl = ssl

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> Socket:
        socket = WebSocket(url, self._ssl, on_message, on_close)
        self.run(socket.run())
        return socket


class _Dial(connect):
    """Follows no redirect, as browsers do not: the token would go to wherever it leads."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


class WebSocket:
    def __init__(
        self,
        url: str,
        ssl: SSLContext | None,
        on_message: Callable[[str | bytes], None],
        on_close: Callable[[int, str], None],
    ) -> None:
        self._url = url
        self._ssl = ssl
        self._on_message = on_message
        self._on_close = on_close
        self._is_closed = False
        #: Set by `close`.
        self._closing = asyncio.Event()
        #: What is to be sent; a number ends the connection with that code.
        self._queue: asyncio.Queue[str | int] = asyncio.Queue()

    def send(self, text: str) -> None:
        self._queue.put_nowait(text)

    def close(self, code: int) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._closing.set()
        self._queue.put_nowait(code)

    async def run(self) -> None:
        connecting = asyncio.create_task(self._connect())
        stopping = asyncio.create_task(self._queue.get())
        try:
            # Nothing is sent before the welcome: what comes first out of the queue is the wish to stop.
            await asyncio.wait({connecting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not connecting.done():
                return
            try:
                connection = connecting.result()
            except Exception as error:
                return self._tell(_ABNORMAL, _reason_of(error))
            await self._serve(connection, stopping)
        finally:
            connecting.cancel()
            stopping.cancel()
            await asyncio.wait({connecting, stopping})

    async def _connect(self) -> ClientConnection:
        # None would mean that there is no TLS, which a wss: address refuses.
        certificates: dict[str, Any] = {"ssl": self._ssl} if self._ssl else {}
        # The client measures time itself. Values may be large, and the gateway has limits of its own.
        connection = await _Dial(
            self._url,
            **certificates,
            subprotocols=[Subprotocol("keycast.v1.bytes")],
            compression=None,
            open_timeout=None,
            ping_interval=None,
            close_timeout=_CLOSE_SECONDS,
            max_size=_MESSAGE_BYTES_MAX,
        )
        # Values would come in a form that this client does not read.
        if not connection.subprotocol:
            await _hang_up(connection)
            raise ConnectionError("no subprotocol was taken: is there a proxy that drops its header?")
        return connection

    async def _serve(self, connection: ClientConnection, first: asyncio.Task[str | int]) -> None:
        writing = asyncio.create_task(self._write(connection, first))
        limiting = asyncio.create_task(self._limit_close(connection))
        try:
            async for data in connection:
                if not self._is_closed:
                    self._on_message(data)
                    # Messages that came together would else be one turn of the loop, however long.
                    await asyncio.sleep(0)
        except ConnectionClosed:
            pass
        finally:
            writing.cancel()
            limiting.cancel()
            await asyncio.wait({writing, limiting})
            await _hang_up(connection)
        self._tell(connection.close_code or _ABNORMAL, connection.close_reason or "")

    async def _write(self, connection: ClientConnection, first: asyncio.Task[str | int]) -> None:
        item = await first
        try:
            while isinstance(item, str):
                await connection.send(item)
                item = await self._queue.get()
            await connection.close(item)
        except ConnectionClosed:
            pass  # The reader is told, too, and by what code.

    async def _limit_close(self, connection: ClientConnection) -> None:
        """Ends a connection whose writer waits for the other end to read, and so never comes to the close code."""
        await self._closing.wait()
        await asyncio.sleep(_CLOSE_SECONDS)
        connection.transport.abort()

    def _tell(self, code: int, reason: str) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_close(code, reason)


async def _hang_up(connection: ClientConnection) -> None:
    """Ends a connection that is still open where a program ends without `close`."""
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await connection.close()
    except TimeoutError:
        connection.transport.abort()
        await connection.wait_closed()


def _reason_of(error: Exception) -> str:
    """Why there is no connection."""
    if isinstance(error, InvalidMessage) and isinstance(error.__cause__, EOFError):
        return "the gateway closed before it answered"
    return str(error) or repr(error)
