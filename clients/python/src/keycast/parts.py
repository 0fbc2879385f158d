"""What each part of the client is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .calls import Calls
from .environment import Environment, Link


@dataclass(frozen=True)
class Deps:
    environment: Environment
    link: Link
    send: Callable[[dict[str, Any]], None]
    #: Of the next request.
    next_id: Callable[[], int]
    calls: Calls
