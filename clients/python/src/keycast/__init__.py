"""Live values over one WebSocket to a Keycast gateway."""

from .auth import Token, TokenRefused
from .client import Keycast, connect
from .connection import ConnectionState
from .entry import Stale, ValueState
from .errors import KeycastError
from .handle import Value

__all__ = ["ConnectionState", "Keycast", "KeycastError", "Stale", "Token", "TokenRefused", "Value", "ValueState", "connect"]
