"""For backends: calls to a gateway's internal listener, and the check of Keycast's calls to a backend."""

from .backend import Backend
from .blocking import BlockingBackend
from .gateway import CallError
from .signature import is_from_keycast

__all__ = ["Backend", "BlockingBackend", "CallError", "is_from_keycast"]
