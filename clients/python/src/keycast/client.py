"""Makes a client: one connection, and the values and rooms that come over it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .calls import Calls
from .connection.auth import Token
from .connection.connection import Connection, ConnectionState
from .connection.websocket import NetworkEnvironment
from .environment import Environment, Link
from .errors import KeycastError
from .listeners import Listeners
from .parts import Deps
from .rooms.handle import BUFFER_MESSAGES, Room
from .rooms.messages import Position
from .rooms.rooms import Rooms
from .values.entry import ValueState
from .values.handle import Value
from .values.values import Values

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def connect(
    url: str, *, token: Token | None = None, ssl: SSLContext | None = None, keep_forbidden: bool = False
) -> Keycast:
    """Opens a connection that comes back by itself until it is closed. Needs a running loop.

    The URL is that of a gateway's WebSocket, such as `wss://example.com/ws`. `token` says for whom the sessions are; a
    function is asked again before the token expires. `ssl` is for certificates of your own. With `keep_forbidden` a
    value stays in place when its user may see it no more. Raises ValueError where the URL cannot be read.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        raise ValueError(f"{url!r} is no address of a gateway, as wss://example.com/ws is")
    environment = NetworkEnvironment(ssl)
    socket_url = urlunsplit(parts._replace(scheme=_SCHEMES[parts.scheme]))
    return Keycast(socket_url, environment, environment.ended, token, keep_forbidden)


class Keycast:
    """A client. Made by `connect`, closed at the end of `async with`."""

    def __init__(
        self,
        url: str,
        environment: Environment,
        wait_ended: Callable[[], Awaitable[None]] | None = None,
        token: Token | None = None,
        keep_forbidden: bool = False,
    ) -> None:
        self._wait_ended = wait_ended
        self._listeners: Listeners[ConnectionState] = Listeners(environment, lambda: self.state)
        self._last_id = 0
        self._calls = Calls(environment, self._send, self._next_id)
        self._link = link = Link()
        deps = Deps(environment, link, self._send, self._next_id, self._calls)
        self._values = Values(deps, keep_forbidden)
        self._rooms = Rooms(deps, self._values, keep_forbidden)
        self._connection = Connection(
            url,
            environment,
            token,
            link,
            # Rooms come before values: errors with a key are theirs, too, where they answer a publish.
            parts=(self._calls, self._rooms, self._values),
            on_state=self._on_state,
        )
        self._connection.connect()

    @property
    def state(self) -> ConnectionState:
        """How the connection stands."""
        return self._connection.state

    def on_state(self, listener: Callable[[ConnectionState], None]) -> Callable[[], None]:
        """Calls a listener at every change of the connection, and once soon with how it stands.

        Gives what takes the listener off.
        """
        return self._listeners.add(listener)

    def value(self, key: str) -> Value:
        """Subscribes to a key. All handles of a key share one subscription and one copy of the value."""
        value = self._values.value(key)
        self._rooms.wanted_as_value(key)
        return value

    def get(self, key: str) -> asyncio.Future[Any]:
        """Asks for a value once. Waits while there is no connection; cancel it to give up, as `asyncio.timeout` does.

        Gives JSON parsed, text as a string, anything else as bytes. Raises KeycastError.
        """
        return self._values.get(key)

    def room(
        self,
        key: str,
        *,
        after: Position | None = None,
        last: int | None = None,
        presence: bool = False,
        follow: bool = True,
        buffer_messages: int = BUFFER_MESSAGES,
    ) -> Room:
        """Follows a room: every message, in order, once. All handles of a room share one subscription.

        It begins with every message after a position, with the `last` ones, or with the next. `presence`: who is there
        is told, too. With `follow=False` nothing of the room is wanted; it is only published into, or read in parts.
        """
        return self._rooms.room(key, after, last, presence, follow, buffer_messages)

    def peek(self, key: str) -> ValueState:
        """The state of a key that some handle is open for, without subscribing."""
        return self._values.peek(key)

    def reconnect(self) -> None:
        """Connects now in place of waiting, also after the gateway closed for good.

        Asks for a token, and for keys that were refused or have ended, where those wait. Does nothing after `close()`.
        """
        self._revive()
        # A listener may have closed it.
        if self._connection.is_up:
            self._connection.wake()
        elif not self._link.is_closed:
            self._connection.connect()

    def close(self) -> None:
        """Ends everything: handles, loops, gets and the connection, which stays closed."""
        if self._link.is_closed:
            return
        self._link.is_closed = True
        self._connection.close("closed by this client")

    async def __aenter__(self) -> Keycast:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._wait_ended:
            await self._wait_ended()

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.send(message)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _revive(self) -> None:
        for part in (self._rooms, self._values):
            if not self._link.is_closed:
                part.revive()

    def _on_state(self, state: ConnectionState) -> None:
        if state.name == "closed":
            error = KeycastError("closed", state.reason or "")
            for part in (self._calls, self._rooms, self._values):
                part.end(error)
            # A listener that heard of the end may have called `reconnect` while others were still to hear of it.
            if self._connection.is_up:
                self._revive()
        self._listeners.tell(state)
