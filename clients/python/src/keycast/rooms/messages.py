"""What an application is given of a room. None of it is ever changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..errors import Health, KeycastError


@dataclass(frozen=True)
class Position:
    """A place in a room's order. `seq` counts 1, 2, 3 … within an `epoch`; another epoch is another history."""

    epoch: str
    seq: int


#: Of a larger one JavaScript, and so a gateway, does not know each digit.
_SEQ_MAX = 2**53 - 1


def check_position(option: str, given: Position | None) -> None:
    """Raises where it is none: the gateway would refuse it with all else that is asked for in the same message."""
    if given is None:
        return
    if not isinstance(given, Position) or type(given.epoch) is not str or type(given.seq) is not int:
        raise TypeError(f"{option} must be a Position of a str and an int, not {given!r}")
    if not given.epoch or not 0 <= given.seq <= _SEQ_MAX:
        raise ValueError(f"{option} must have an epoch, and a seq from 0 to 2**53 - 1: {given!r}")


@dataclass(frozen=True)
class Message:
    position: Position
    #: When it was kept, in seconds since 1970: to be shown, not to order by.
    at: float
    #: The user who published it; None for one without a token.
    sender: str | None
    message_id: str | None
    data: Any
    #: It was deleted, and nothing is left but its place: `data` is None.
    deleted: bool = False
    #: Those from the first to the last `seq` of each part were deleted: show them no longer. It has no data itself.
    deletes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, epoch: str, message: dict[str, Any]) -> Message:
        """That of a `message`, or of an element of a history."""
        return cls(
            position=Position(epoch, message["seq"]),
            at=message["at"] / 1_000,
            sender=message.get("from"),
            message_id=message.get("messageId"),
            data=message["data"],
            deleted=message.get("deleted", False),
            deletes=tuple((first, last) for first, last in message.get("deletes", ())),
        )


@dataclass(frozen=True)
class Gap:
    """Some messages cannot be given: the room goes on after `position`.

    `slow`: this program's own loop was too far behind.
    """

    reason: Literal["trimmed", "epoch", "ahead", "slow"]
    position: Position
    #: The first message that can still be read.
    oldest: Position


@dataclass(frozen=True)
class PendingMessage:
    """A message that was published here and of which it is not known yet whether it was kept."""

    message_id: str
    data: Any
    #: When it was published, in seconds since 1970, by this machine's clock.
    at: float


@dataclass(frozen=True)
class Published:
    """Where a message is kept."""

    message_id: str
    position: Position
    at: float
    #: Whether it was there already.
    duplicate: bool


@dataclass(frozen=True)
class History:
    """A part of a room's history, ascending."""

    messages: tuple[Message, ...]
    #: Whether there is more in the direction asked.
    more: bool
    #: Whether `after` reaches further back than the history.
    truncated: bool
    #: Of the room.
    oldest: Position
    newest: Position


@dataclass(frozen=True)
class Joined:
    name: str
    #: A secret by which a client without a token is known again as the one with that name.
    claim: str | None = None


@dataclass(frozen=True)
class Member:
    """A user who joined a room."""

    #: Tells members apart: the same for all tabs of the user.
    id: str | None
    #: None for one without a token.
    user: str | None
    name: str
    tabs: int

    @classmethod
    def of(cls, member: dict[str, Any]) -> Member:
        return cls(member.get("id"), member.get("user"), member["name"], member["tabs"])


@dataclass(frozen=True)
class MembersState:
    """Who is in a room."""

    #: None before it is known.
    count: int | None = None
    #: None where the room only counts them.
    members: tuple[Member, ...] | None = None


@dataclass(frozen=True)
class RoomState:
    """How a room stands. The object stays the same until something of it changes."""

    #: Whether messages arrive as they are published: false before the first answer and after a loss.
    live: bool = False
    #: How the stream of messages stands.
    health: Health = "loading"
    #: Where it is `subscribed` it heals by itself; else the subscription has ended.
    error: KeycastError | None = None
    pending: tuple[PendingMessage, ...] = ()
    #: The name under which this client is there.
    joined_as: str | None = None
