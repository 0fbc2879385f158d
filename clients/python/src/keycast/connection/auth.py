"""For whom a session is: asks the application for a token, sends it, and renews it before it expires."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from ..environment import Alarm, Environment
from .backoff import backoff_ms

#: A token, or what gives one: called for the first connection, before the token expires and where it was refused.
Token = str | Callable[[], Awaitable[str]]

#: A token is renewed so long before it expires, or a quarter of its time where that is shorter.
_MARGIN_MS = 30_000

#: A function that gives nothing in this time is asked again after a wait, as one that fails.
_ANSWER_MS = 10_000

#: A function that gives the same token again and again must not be asked all the time.
_RENEWAL_MIN_MS = 1_000


class TokenRefused(Exception):
    """Raise it in a `token` function when the user is not signed in any more: the client closes and asks no more."""


class Auth:
    def __init__(
        self,
        token: Token,
        environment: Environment,
        send: Callable[[dict[str, Any]], None],
        on_authed: Callable[[str], None],
        on_end: Callable[[str, str], None],
    ) -> None:
        self._environment = environment
        self._alarm = Alarm(environment)
        self._send = send
        self._on_authed = on_authed
        #: No further token is to be had.
        self._on_end = on_end
        self._function = None if isinstance(token, str) else token
        self._token = token if isinstance(token, str) else ""
        #: Until then the token is good for another connection: an application is not asked at each loss.
        self._renew_at_ms = math.inf if isinstance(token, str) else 0.0
        self._was_refused = False
        self._failures = 0
        #: Stands for the question under way. An answer that comes after the next question, or after a loss, is late.
        self._turn = object()
        #: In their order. Only the last two may still give a token.
        self._asking: dict[asyncio.Task[None], None] = {}

    def obtain(self, use: Callable[[], None], on_failure: Callable[[str], None]) -> None:
        """Calls `use` once there is a token to be sent."""
        self._turn = object()
        if self._function is None or self._environment.now() < self._renew_at_ms:
            return use()
        for late in [*self._asking][:-1]:
            late.cancel()
        task = self._environment.run(self._ask(self._function, use, on_failure))
        self._asking[task] = None
        task.add_done_callback(lambda ended: self._asking.pop(ended, None))

    def say(self) -> None:
        self._send({"type": "auth", "id": "auth", "token": self._token})

    def wake(self) -> None:
        """Asks now for a token that a failed renewal waits for."""
        if self._alarm.is_set and self._renew_at_ms < math.inf:
            self._alarm.set(self._renew, max(0.0, self._renew_at_ms - self._environment.now()))

    def lost(self) -> None:
        """The session is gone, or given up."""
        self._turn = object()
        self._alarm.clear()

    def forget(self) -> None:
        """The token is good for no other connection."""
        self._renew_at_ms = 0.0
        self._was_refused = False

    def close(self) -> None:
        """Nobody wants a token any more."""
        self.lost()
        for task in [*self._asking]:
            task.cancel()

    def received(self, message: dict[str, Any]) -> bool:
        """Says whether a message was about the token."""
        code = message.get("code")
        if message["type"] == "authed":
            self._authed(message["user"], message["expiresInMs"])
        elif message["type"] == "error" and message.get("id") == "auth":
            if "retryAfterMs" in message:
                self._alarm.set(self.say, message["retryAfterMs"])
            elif code != "token_refused" or not self._function or self._was_refused:
                self._on_end(message["code"], message.get("message", ""))
            else:
                self._was_refused = True
                self._renew()
        # One with an id or a key is about that alone. Else many keys would ask for as many tokens; and so would a gateway
        # that says it again while the next token is asked for.
        elif code == "token_expired" and not message.keys() & {"id", "key"}:
            if self._function and self._renew_at_ms:
                self._renew()
        else:
            return False
        return True

    async def _ask(
        self, function: Callable[[], Awaitable[str]], use: Callable[[], None], on_failure: Callable[[str], None]
    ) -> None:
        turn = self._turn
        try:
            given = await function()
        except Exception as error:
            if self._turn is not turn:
                return
            if isinstance(error, TokenRefused):
                return self._on_end("token_refused", str(error) or "no token")
            return on_failure(f"no token: {error!r}")
        # One that comes late serves the next connection, unless that has a newer one already.
        if self._turn is turn or self._renew_at_ms == 0:
            self._token = given
            self._renew_at_ms = math.inf
        if self._turn is turn:
            use()

    def _authed(self, user: str, expires_in_ms: float) -> None:
        self._was_refused = False
        self._failures = 0
        if self._function:
            good_ms = max(_RENEWAL_MIN_MS, expires_in_ms - min(_MARGIN_MS, expires_in_ms / 4))
            self._renew_at_ms = self._environment.now() + good_ms
            self._alarm.set(self._renew, good_ms)
        self._on_authed(user)

    def _renew(self) -> None:
        self._renew_at_ms = 0.0
        self._say_next()

    def _say_next(self) -> None:
        """Says the next token, also one that came late."""

        def again(_: str = "") -> None:
            self._alarm.set(self._say_next, backoff_ms(self._environment.random(), self._failures))
            self._failures += 1

        self._alarm.set(again, _ANSWER_MS)
        self.obtain(self.say, again)
