"""One room as this client follows it. Each reader is given every message after its place, in order, or a gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from ..environment import Alarm
from ..errors import Health, KeycastError
from ..listeners import Listeners
from ..parts import Deps
from .members import Members
from .membership import Membership
from .messages import Gap, Message, Position, RoomState

Reason = Literal["trimmed", "epoch", "ahead", "slow"]


class Reader:
    """A handle, as its room sees it."""

    def __init__(self, position: Position | None, last: int | None, presence: bool) -> None:
        #: Of the last message it was given; None before its place is known.
        self.position = position
        self.last = last
        self.presence = presence
        self.take: Callable[[Message | Gap], None] = lambda item: None


class RoomEntry:
    def __init__(
        self,
        key: str,
        deps: Deps,
        want: Callable[[str], None],
        is_open: Callable[[], bool],
        refusal_of: Callable[[str], KeycastError | None],
        forget: Callable[[str], None],
    ) -> None:
        self.key = key
        self.link = deps.link
        environment = deps.environment
        self._want = want
        self.state = RoomState()
        self.listeners: Listeners[RoomState] = Listeners(environment, lambda: self.state)
        self.members = Members(environment, self.want)
        # A dict is a set that keeps its order.
        self.readers: dict[Reader, None] = {}
        #: How many handles share it.
        self.handles = 0
        #: How the subscription ended, if it did; and how often it was refused, one time after the other.
        self.end: Literal["forbidden", "ended"] | None = None
        self.refusals = 0
        self.refusal = Alarm(environment)
        self.membership = Membership(self, deps, is_open, refusal_of, forget)
        #: Where the stream is.
        self.position: Position | None = None
        #: The subscribe whose answer counts, for whom and what it asked.
        self.ask_id = 0
        self._asked_for: set[Reader] = set()
        self._asked_last: Reader | None = None
        self._asked_after: Position | None = None

    @property
    def ended(self) -> bool:
        """Whether it is not asked for again by itself."""
        return self.end == "ended"

    def want(self) -> None:
        """Subscribes, or subscribes anew. Nobody may want it any more, where the gateway has not heard so yet."""
        if self.readers:
            self._want(self.key)

    def become(self, **changes: Any) -> None:
        state = replace(self.state, **changes)
        state = replace(state, health=self._health(state))
        # Two that differ are not compared message by message: there may be thousands.
        if state.pending is self.state.pending and state == self.state:
            return
        self.state = state
        self.listeners.tell(state)

    def _health(self, state: RoomState) -> Health:
        if self.end:
            return self.end
        if self.link.is_offline:
            return "offline"
        if not state.live:
            return "loading"
        # An error of a join, or without a time to retry, says nothing about the stream.
        error = None if state.error is self.membership.error else state.error
        return "stale" if error and error.retry_after is not None else "live"

    def add(self, reader: Reader) -> None:
        self.readers[reader] = None
        is_here = self.state.live and (not reader.presence or self.members.is_wanted)
        if is_here and not reader.position and not reader.last:
            reader.position = self.position
        elif not is_here or reader.position is None or reader.position != self.position:
            self.want()

    def stop(self) -> None:
        """The gateway says nothing more of the room until it is asked again."""
        self.members.lost()
        self.become(live=False)

    def ask(self, request_id: int) -> Any:
        """How the next subscribe names the room: one of its readers may want more than the others."""
        self.ask_id = request_id
        self._asked_for = set(self.readers)
        self.become(live=False)
        self.members.is_wanted = any(reader.presence for reader in self.readers)
        self._asked_last = next((each for each in self.readers if not each.position and each.last), None)
        after: Position | None = None
        for place in [] if self._asked_last else [reader.position for reader in self.readers]:
            # Those of another epoch than the first are asked for next, or are told.
            if place and (not after or (place.epoch == after.epoch and place.seq < after.seq)):
                after = place
        self._asked_after = after
        entry: dict[str, Any] = {"key": self.key}
        if after:
            entry["after"] = {"epoch": after.epoch, "seq": after.seq}
        if self._asked_last:
            entry["last"] = self._asked_last.last
        if self.members.is_wanted:
            entry["presence"] = True
        return entry if len(entry) > 1 else self.key

    def begin(self, begun: dict[str, Any]) -> None:
        """The answer to the latest `ask`: the stream begins anew, `count` messages before `seq`."""
        head = Position(begun["epoch"], begun["seq"])
        start = Position(head.epoch, head.seq - begun["count"])
        self.position = start
        self.end = None
        is_enough = True
        for reader in list(self.readers):
            place = reader.position
            is_lost = not begun["recovered"] and place is not None and place == self._asked_after and place != start
            if reader is self._asked_last:
                reader.position = start
            elif place is None:
                if reader.last:
                    is_enough = False
                else:
                    reader.position = head
            elif reader not in self._asked_for:
                # One that came later may name a place that the room had not reached at this answer.
                is_enough = False
            elif place.epoch != head.epoch:
                self._tell_gap(reader, head, begun["oldest"], "epoch")
            elif place.seq > head.seq:
                self._tell_gap(reader, head, begun["oldest"], "ahead")
            elif is_lost:
                self._tell_gap(reader, head, begun["oldest"], "trimmed")
            elif place.seq < start.seq:
                is_enough = False
        self.become(live=True, error=None)
        if not is_enough:
            self.want()

    def take(self, message: dict[str, Any]) -> None:
        before = self.position
        if not self.state.live or not before or message["seq"] <= before.seq:
            return
        # A hole, which no gateway leaves: what it thinks of this client is wrong.
        if message["seq"] > before.seq + 1:
            return self.want()
        item = Message.of(before.epoch, message)
        self.position = item.position
        self.become(error=None)
        for reader in list(self.readers):
            if reader.position == before:
                reader.position = item.position
                reader.take(item)

    def take_gap(self, gap: dict[str, Any]) -> None:
        """Takes a gap that the gateway tells of."""
        if not self.state.live:
            return
        position = Position(gap["epoch"], gap["seq"])
        self.position = position
        for reader in list(self.readers):
            place = reader.position
            # A reader beyond the gap has what comes next already, except where the history now ends before its place.
            is_ahead = gap["reason"] == "ahead" and place != position
            if place and (is_ahead or place.epoch != position.epoch or place.seq < position.seq):
                self._tell_gap(reader, position, gap["oldest"], gap["reason"])

    def _tell_gap(self, reader: Reader, position: Position, oldest: int, reason: Reason) -> None:
        reader.position = position
        reader.take(Gap(reason, position, Position(position.epoch, oldest)))
