"""A connection as the client wants it, made with the package `websockets`: nothing to await, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ssl import SSLContext

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from .delta import RESULT_BYTES_MAX
from .environment import LoopEnvironment, Socket

#: A gateway that is gone answers no close either.
_CLOSE_SECONDS = 2

_ABNORMAL = 1006


class NetworkEnvironment(LoopEnvironment):
    """The running loop, and sockets in it."""

    def __init__(self, ssl: SSLContext | None) -> None:
        super().__init__()
        self._ssl = ssl
        self._sockets: set[asyncio.Task[None]] = set()

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> Socket:
        socket = WebSocket(url, self._ssl, on_message, on_close)
        self._sockets.add(socket.task)
        socket.task.add_done_callback(self._sockets.discard)
        return socket

    async def closed(self) -> None:
        """Waits until no socket is left."""
        if self._sockets:
            await asyncio.wait(self._sockets)


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
        #: What is to be sent; None ends the connection.
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.task = asyncio.create_task(self._run(), name="keycast socket")

    def send(self, text: str) -> None:
        self._queue.put_nowait(text)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._queue.put_nowait(None)

    async def _run(self) -> None:
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
                return self._tell(_ABNORMAL, str(error))
            await self._serve(connection, stopping)
        finally:
            connecting.cancel()
            stopping.cancel()
            await asyncio.wait({connecting, stopping})

    async def _connect(self) -> ClientConnection:
        # The client measures time itself. Values may be large, and the gateway has limits of its own.
        return await dial(
            self._url,
            ssl=self._ssl,
            subprotocols=[Subprotocol("keycast.v1.bytes")],
            compression=None,
            open_timeout=None,
            ping_interval=None,
            close_timeout=_CLOSE_SECONDS,
            max_size=RESULT_BYTES_MAX,
        )

    async def _serve(self, connection: ClientConnection, first: asyncio.Task[str | None]) -> None:
        writing = asyncio.create_task(self._write(connection, first))
        try:
            async for data in connection:
                if not self._is_closed:
                    self._on_message(data)
        except ConnectionClosed:
            pass
        finally:
            writing.cancel()
            await asyncio.wait({writing})
            await connection.close()
        self._tell(connection.close_code or _ABNORMAL, connection.close_reason or "")

    async def _write(self, connection: ClientConnection, first: asyncio.Task[str | None]) -> None:
        text = await first
        try:
            while text is not None:
                await connection.send(text)
                text = await self._queue.get()
            await connection.close()
        except ConnectionClosed:
            pass  # The reader is told, too, and by what code.

    def _tell(self, code: int, reason: str) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._on_close(code, reason)
