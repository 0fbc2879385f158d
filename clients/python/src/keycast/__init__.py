"""Live values, and rooms of messages, over one WebSocket to a Keycast gateway."""

from .client import Keycast, connect
from .connection.auth import Token, TokenRefused
from .connection.connection import ConnectionState
from .errors import Health, KeycastError
from .keys import key, user_segment
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
from .values.entry import Stale, ValueState
from .values.handle import Value

__all__ = [
    "ConnectionState",
    "Gap",
    "Health",
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
    "key",
    "user_segment",
]
