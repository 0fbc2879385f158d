"""Who is in a room: the whole first, then change by change. A change that does not follow the last is not applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..environment import Environment
from ..listeners import Listeners
from .messages import Member, MembersState


class Members:
    def __init__(self, environment: Environment, on_hole: Callable[[], None]) -> None:
        #: Asks for the whole again.
        self._on_hole = on_hole
        #: Whether the gateway was asked to tell.
        self.is_wanted = False
        self.state = MembersState()
        self.listeners: Listeners[MembersState] = Listeners(
            environment, lambda: None if self.state.count is None else self.state
        )
        #: Of the last change; None until the whole has come.
        self._rev: int | None = None

    def lost(self) -> None:
        """What is said next is not known to follow what was said."""
        self._rev = None

    def forget(self) -> None:
        """The user may not know them any more."""
        self._rev = None
        self.state = MembersState()
        self.listeners.tell(self.state)

    def take(self, message: dict[str, Any]) -> None:
        """Takes `members` or `presence`."""
        # A room that grew too large names nobody any more.
        members: tuple[Member, ...] | None = None
        if message["type"] == "members":
            if "members" in message:
                members = tuple(Member.of(each) for each in message["members"])
        elif self._rev is None:
            return
        elif message["rev"] != self._rev + 1:
            self._rev = None
            return self._on_hole()
        elif "joined" in message and self.state.members is not None:
            members = _changed(self.state.members, message["joined"], message.get("left", []))
        self._rev = message["rev"]
        self.state = MembersState(message["count"], members)
        self.listeners.tell(self.state)


def _changed(
    members: tuple[Member, ...], joined: list[dict[str, Any]], left: list[dict[str, Any]]
) -> tuple[Member, ...]:
    """`joined`: those who came, or changed."""
    by_id = {_id_of(member): member for member in members}
    for member in map(Member.of, left):
        by_id.pop(_id_of(member), None)
    for member in map(Member.of, joined):
        by_id[_id_of(member)] = member
    return tuple(by_id.values())


def _id_of(member: Member) -> str:
    return member.id or member.user or member.name
