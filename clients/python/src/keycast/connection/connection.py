"""One WebSocket that comes back by itself: it connects, notices silence, and waits with jitter after a loss."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from ..environment import Alarm, Environment, Link, Socket
from .auth import Auth, Token
from .backoff import backoff_ms
from .codes import FINAL_CLOSE_CODES
from .frames import read_frame, write_frame

_log = logging.getLogger("keycast")

#: A connection must last this long before failures count from zero: one that is accepted and dropped does not.
STEADY_MS = 5_000

#: A handshake that takes longer was swallowed on the way.
HANDSHAKE_MS = 10_000

#: A connection that was silent for a heartbeat must answer a ping within this.
PONG_MS = 10_000

#: A large value on a slow line keeps all else back until it is whole. So after each connection that was given up for its
#: silence the next one is pinged twice as often in a row, so many times at most: else no connection would ever bring it.
PINGS_MAX = 8

HEARTBEAT_DEFAULT_MS = 25_000

#: A shorter one is no gateway's: this client would ask as fast as that answers.
HEARTBEAT_MS_MIN = 250

#: How a gateway ends a session that has no token any more.
UNAUTHENTICATED = 4001

#: How a client ends one: for good, or to go on in another. With the second code it leaves no room that it joined.
DONE = 1000
MOVED = 4000


@dataclass(frozen=True)
class ConnectionState:
    """How the connection stands.

    After `closed` with a number as `code` the gateway wants this client back no more; with an error code there is no
    token for it; without one, the client was closed.
    """

    name: Literal["connecting", "open", "waiting", "closed"]
    #: Names the session in the gateway's log, once it is open.
    session: str | None = None
    #: For whom it is, if known.
    user: str | None = None
    #: When the next try is, in seconds since 1970, while it waits.
    retry_at: float | None = None
    #: For people to read.
    reason: str | None = None
    code: int | str | None = None


class Part(Protocol):
    """A part of the client, which handles one kind of messages."""

    def opened(self, limits: dict[str, int]) -> None:
        """Requests may be sent from now on."""

    def lost(self) -> None:
        """The session is gone."""

    def received(self, message: dict[str, Any], body: bytes | None) -> bool:
        """Says whether the message was for it alone."""


class Connection:
    def __init__(
        self,
        url: str,
        environment: Environment,
        token: Token | None,
        link: Link,
        parts: Sequence[Part],
        on_state: Callable[[ConnectionState], None],
    ) -> None:
        self._url = url
        self._environment = environment
        self._link = link
        self._parts = parts
        self._on_state = on_state
        self._alarm = Alarm(environment)
        self._auth = None if token is None else Auth(token, environment, self._transmit, self._open, self._end)
        self.state = ConnectionState("connecting")
        self._socket: Socket | None = None
        #: The first message of the session.
        self._greeting: dict[str, Any] = {}
        #: Of the sessions before.
        self._user: str | None = None
        #: A try that nobody served counts as a half.
        self._failures = 0.0
        #: Why there is no connection, as it was logged last.
        self._logged: str | None = None
        self._heartbeat_ms: float = HEARTBEAT_DEFAULT_MS
        self._opened_at_ms = 0.0
        self._heard_at_ms = 0.0
        #: Those without an answer, and how many there may be.
        self._pings = 0
        self._pings_max = 1
        #: When the gateway wants its clients back, once it said that it is closing.
        self._return_at_ms: float | None = None

    @property
    def is_up(self) -> bool:
        """Also while a token is fetched, and there is no socket yet."""
        return self.state.name in ("connecting", "open")

    def connect(self) -> None:
        if self._drop():
            return
        self._return_at_ms = None
        self._greeting = {}
        self._limit_handshake("no token in time")
        self._become(ConnectionState("connecting"))
        # A listener may have closed it.
        if self.state.name == "closed":
            return
        # The token first: a gateway does not keep a connection for long that sends none.
        if self._auth:
            self._auth.obtain(self._dial, self._lost)
        else:
            self._dial()

    def send(self, message: dict[str, Any]) -> None:
        """A message is dropped where the connection is not open: the next session is told all of it anew."""
        if self.state.name == "open":
            self._transmit(message)

    def wake(self) -> None:
        """A person insists: nothing waits for its time."""
        if self._auth:
            self._auth.wake()
        if self.state.name == "open" and self._return_at_ms is None and not self._pings:
            self._ask()

    def close(self, reason: str) -> None:
        if self._auth:
            self._auth.close()
        self._end(None, reason)

    def _dial(self) -> None:
        # A socket that was given up may still speak: what it says is of an earlier session.
        socket: Socket

        def on_message(data: str | bytes) -> None:
            if self._socket is socket:
                self._receive(data)

        def on_close(code: int, reason: str) -> None:
            if self._socket is socket:
                self._lost(reason, code)

        socket = self._environment.dial(self._url, on_message, on_close)
        self._socket = socket
        self._limit_handshake("no answer to the handshake")

    def _limit_handshake(self, reason: str) -> None:
        self._alarm.set(lambda: self._lost(reason), HANDSHAKE_MS)

    def _transmit(self, message: dict[str, Any]) -> None:
        if self._socket:
            self._socket.send(write_frame(message))

    def _become(self, state: ConnectionState) -> None:
        self.state = state
        self._on_state(state)

    def _drop(self, code: int = MOVED) -> bool:
        """Gives up the session, and says whether a listener that heard of the loss has closed the client."""
        before = self.state
        socket, self._socket = self._socket, None
        self._pings = 0
        self._alarm.clear()
        if self._auth:
            self._auth.lost()
        if socket:
            socket.close(code)
        self._link.session = object()
        # The first call comes before there was anything to lose.
        self._link.is_offline = self._link.is_offline is not None
        # Also where a gateway is closing and the client leaves it: what is under way there is asked of the next one.
        for part in self._parts:
            part.lost()
        return self.state is not before

    def _receive(self, data: str | bytes) -> None:
        try:
            message, body = read_frame(data)
        except (ValueError, RecursionError):
            return self._lost("the gateway sent what cannot be read")
        try:
            self._take(message, body)
        except Exception as error:
            # Raised further it would end the socket's task: the connection would look open and hear nothing.
            self._environment.report(error, "keycast failed at a message, and connects again")
            # A listener may have closed the client before.
            if self._socket:
                self._lost("this client failed at a message")

    def _take(self, message: dict[str, Any], body: bytes | None) -> None:
        self._heard_at_ms = self._environment.now()
        if self._pings:
            if self._pings == 1:
                self._pings_max = 1
            self._pings = 0
            self._listen(self._heartbeat_ms)
        match message["type"]:
            case "welcome":
                self._greeting = message
                if self._auth:
                    self._auth.say()
                else:
                    self._open(message.get("user"))
            case "pong":
                pass
            case "closing":
                self._closing(message["reconnectAfterMs"])
            case _:
                if not self._auth or not self._auth.received(message):
                    any(part.received(message, body) for part in self._parts)

    def _closing(self, wait_ms: float) -> None:
        self._settle()
        # A gateway that says so as each session begins would be dialled without end.
        if self._failures:
            wait_ms = max(wait_ms, backoff_ms(self._environment.random(), self._failures))
        self._failures += 1
        self._return_at_ms = self._environment.now() + wait_ms
        self._alarm.set(self.connect, wait_ms)

    def _settle(self) -> None:
        if self.state.name == "open" and self._environment.now() - self._opened_at_ms >= STEADY_MS:
            self._failures = 0

    def _open(self, user: str | None) -> None:
        # Else another user would see what this one saw, and publish what this one wrote.
        if self._user not in (None, user):
            return self._end("other_user", "this session is another user's")
        self._user = user
        # A token that was renewed changes nothing else.
        if self.state.name == "open":
            return
        self._logged = None
        heartbeat_ms = self._greeting.get("heartbeatMs", 0)
        self._heartbeat_ms = heartbeat_ms if heartbeat_ms >= HEARTBEAT_MS_MIN else HEARTBEAT_DEFAULT_MS
        self._opened_at_ms = self._environment.now()
        self._link.is_offline = False
        self._listen(self._heartbeat_ms)
        self._become(ConnectionState("open", session=self._greeting["session"], user=user))
        # A listener may have closed it.
        if self._socket:
            for part in self._parts:
                part.opened(self._greeting["limits"])

    def _listen(self, ms: float) -> None:
        """Asks for a sign of life once nothing was heard for a heartbeat, at the earliest after so long."""

        def look() -> None:
            quiet_ms = self._environment.now() - self._heard_at_ms
            if quiet_ms < self._heartbeat_ms:
                self._listen(self._heartbeat_ms - quiet_ms)
            else:
                self._ask()

        self._alarm.set(look, ms)

    def _ask(self) -> None:
        self._pings += 1
        # First: a gateway for tests answers at once.
        self._alarm.set(self._ask if self._pings < self._pings_max else self._silent, PONG_MS)
        self.send({"type": "ping", "id": "ping"})

    def _silent(self) -> None:
        self._pings_max = min(2 * self._pings_max, PINGS_MAX)
        self._lost("the connection went silent")

    def _lost(self, reason: str, code: int | None = None) -> None:
        self._settle()
        if code in FINAL_CLOSE_CODES:
            return self._end(code, reason or f"the gateway closed with {code}")
        reason = reason or "the connection was lost"
        # A wrong address is tried for ever, and what is asked for waits: nothing else may show it.
        if self.state.name == "connecting" and reason != self._logged:
            self._logged = reason
            _log.warning("no connection to %s, it is tried again: %s", _shown(self._url), reason)
        if self._drop():
            return
        if code == UNAUTHENTICATED and self._auth:
            self._auth.forget()
        self._wait(reason)

    def _wait(self, reason: str) -> None:
        if self._return_at_ms is None:
            wait_ms = backoff_ms(self._environment.random(), self._failures)
            # A try that nobody served costs little: after an outage of seconds clients are back within seconds.
            self._failures += 1 if self._greeting else 0.5
        else:
            wait_ms = max(0.0, self._return_at_ms - self._environment.now())
        self._alarm.set(self.connect, wait_ms)
        retry_at = (self._environment.date() + wait_ms) / 1_000
        self._become(ConnectionState("waiting", retry_at=retry_at, reason=reason))

    def _end(self, code: int | str | None, reason: str) -> None:
        # A revoked token would be sent again by `reconnect`.
        if self._auth:
            self._auth.forget()
        if not self._drop(DONE):
            self._become(ConnectionState("closed", reason=reason, code=code))


def _shown(url: str) -> str:
    """Without what may be a secret."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
