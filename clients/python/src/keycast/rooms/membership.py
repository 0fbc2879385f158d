"""Whether this client is in a room, and under which name: it joins again in each new session, until it leaves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..connection.backoff import backoff_ms
from ..environment import Alarm
from ..errors import KeycastError
from ..parts import Deps
from ..random_text import random_text
from .messages import Joined

if TYPE_CHECKING:
    from .room import RoomEntry

_CLAIM = re.compile(r"[A-Za-z0-9_-]{22}")


class Membership:
    def __init__(
        self,
        entry: RoomEntry,
        deps: Deps,
        is_open: Callable[[], bool],
        refusal_of: Callable[[str], KeycastError | None],
        forget: Callable[[str], None],
    ) -> None:
        self._entry = entry
        self._environment = deps.environment
        self._calls = deps.calls
        #: Whether there is a session.
        self._is_open = is_open
        #: Why nothing of a key can be asked.
        self._refusal_of = refusal_of
        #: For a key of which perhaps nothing is wanted any more.
        self._forget = forget
        #: The join that stands, or is to stand again in the next session.
        self._standing: Joined | None = None
        #: By which this client is known again, where it has no token.
        self._claim: str | None = None
        #: What the gateway refused the join with, which is asked for again, and how often it did.
        self.error: KeycastError | None = None
        self._refusals = 0
        self._is_renewing = False
        #: The last of the joins and leaves that are not answered yet.
        self._turn: asyncio.Future[Any] | None = None
        #: For the next try.
        self._alarm = Alarm(deps.environment)

    @property
    def stands(self) -> bool:
        return self._standing is not None

    @property
    def is_busy(self) -> bool:
        """Whether a join or a leave is under way."""
        return self._turn is not None

    @property
    def is_waiting(self) -> bool:
        """Whether it was refused, and waits for its next try."""
        return self._alarm.is_set

    def join(self, name: str, claim: str | None) -> asyncio.Future[Joined]:
        # The first join has a claim already: one whose answer is lost with the connection holds the name for a while.
        wanted = Joined(name, claim or self._claim or random_text())
        # A malformed one is refused: later joins without a claim would be refused with it.
        if wanted.claim and _CLAIM.fullmatch(wanted.claim):
            self._claim = wanted.claim

        def read(message: dict[str, Any]) -> Joined:
            joined = self._standing = _joined_of(message)
            # The room's last handle may have been closed meanwhile.
            if self._entry.handles == 0:
                self.abandon()
            else:
                self._entry.become(joined_as=joined.name)
            return joined

        def ask() -> asyncio.Future[Joined]:
            error = self._refusal_of(self._entry.key)
            return self._calls.refused(error) if error else self._ask(wanted, read)

        return self._in_turn(ask)

    def leave(self) -> asyncio.Future[None]:
        self._end()

        def ask() -> asyncio.Future[None] | None:
            # A join that was under way may stand by now.
            self._end()
            # A session that is gone is in no room.
            if not self._is_open():
                return None
            key = self._entry.key
            return self._calls.ask(key, lambda: {"type": "leave", "key": key}, lambda message, _: None)

        return self._in_turn(ask)

    def abandon(self) -> None:
        """Leaves, and nobody waits for it: without this its failure would be reported as forgotten."""
        self.leave().add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    def lost(self) -> None:
        """The session is gone."""
        self._alarm.clear()

    def refuse(self, error: KeycastError) -> None:
        """The gateway refuses a join that stood."""
        self.error = error
        entry = self._entry
        # Loops raise what ended the subscription.
        entry.become(joined_as=None, error=entry.state.error if entry.end else error)
        # A name that is another's stays so; a right may come back, and a place become free.
        if error.code == "name_taken":
            return self._end()
        if error.retry_after is not None:
            return self._alarm.set(self.renew, error.retry_after * 1_000)
        self._alarm.set(self.renew, backoff_ms(self._environment.random(), self._refusals))
        self._refusals += 1

    def renew(self) -> None:
        """Tells a new session under which name this client is in the room."""
        wanted = self._standing
        # A call that a loss interrupted is made again by itself.
        if not wanted or not self._is_open() or self._is_renewing:
            return
        self._is_renewing = True
        self._alarm.clear()

        def on_done(future: asyncio.Future[Joined | None]) -> None:
            self._is_renewing = False
            error = future.exception()
            if self._standing is not wanted:
                return
            if not isinstance(error, KeycastError):
                joined = future.result()
                if joined:
                    self._refusals = 0
                    before = self._entry.state.error
                    self._entry.become(joined_as=joined.name, error=None if before is self.error else before)
            elif error.retry_after is None or error.code == "capacity":
                self.refuse(error)
            else:
                self._alarm.set(self.renew, error.retry_after * 1_000)

        def ask() -> asyncio.Future[Joined] | None:
            # Another join, a leave, or a loss may have come before it.
            if self._standing is not wanted or not self._is_open():
                return None
            return self._ask(wanted, _joined_of)

        self._in_turn(ask).add_done_callback(on_done)

    def _end(self) -> None:
        self._standing = None
        self._alarm.clear()
        self._entry.become(joined_as=None)

    def _ask(self, wanted: Joined, read: Callable[[dict[str, Any]], Joined]) -> asyncio.Future[Joined]:
        key = self._entry.key
        request = {"type": "join", "key": key, "name": wanted.name}
        if wanted.claim is not None:
            request["claim"] = wanted.claim
        return self._calls.ask(key, lambda: request, lambda message, _: read(message))

    def _in_turn(self, ask: Callable[[], asyncio.Future[Any] | None]) -> asyncio.Future[Any]:
        """Asks once the joins and leaves before it are answered; `ask` may find that nothing is to be asked.

        The gateway refuses a join while another is under way, and a join that is asked again after a loss must not come
        after the leave.
        """
        turn = self._environment.future()
        before, self._turn = self._turn, turn

        def on_answer(answer: asyncio.Future[Any]) -> None:
            error = answer.exception()
            if error:
                turn.set_exception(error)
            else:
                turn.set_result(answer.result())

        def begin(_: object = None) -> None:
            asked = ask()
            if asked:
                asked.add_done_callback(on_answer)
            else:
                turn.set_result(None)

        def on_done(_: object) -> None:
            if self._turn is turn:
                self._turn = None
                self._forget(self._entry.key)

        turn.add_done_callback(on_done)
        if before:
            before.add_done_callback(begin)
        else:
            begin()
        # The gateway takes a join also where the caller is cancelled: `leave` ends it.
        return asyncio.shield(turn)


def _joined_of(message: dict[str, Any]) -> Joined:
    return Joined(message["name"], message.get("claim"))
