"""Live values, and rooms of messages, over one WebSocket to a Keycast gateway."""

from .auth import Token, TokenRefused
from .client import Keycast, connect
from .connection import ConnectionState
from .entry import Stale, ValueState
from .errors import KeycastError
from .handle import Value
from .rooms.handle import Room
from .rooms.messages import (
    Gap,
    History,
    Joined,
    Member,
    MembersState,
    Message,
    PendingMessage,
    Position,
    Published,
    RoomState,
)

__all__ = [
    "ConnectionState",
    "Gap",
    "History",
    "Joined",
    "Keycast",
    "KeycastError",
    "Member",
    "MembersState",
    "Message",
    "PendingMessage",
    "Position",
    "Published",
    "Room",
    "RoomState",
    "Stale",
    "Token",
    "TokenRefused",
    "Value",
    "ValueState",
    "connect",
]
