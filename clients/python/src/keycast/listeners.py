"""The functions that want to hear of one thing. A new one is also told how the thing stands already."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Generic, TypeVar

from .environment import Environment

T = TypeVar("T")


class _Place(Generic[T]):
    def __init__(self, listener: Callable[[T], None], heard: T | None) -> None:
        self.listener = listener
        #: What it was told last.
        self.heard = heard


class Listeners(Generic[T]):
    def __init__(self, environment: Environment, present: Callable[[], T | None]) -> None:
        self._environment = environment
        self._present = present
        self._places: dict[_Place[T], None] = {}

    def add(self, listener: Callable[[T], None], heard: bool = False) -> Callable[[], None]:
        """Calls it at every change, and once soon unless it has heard how things stand. Gives what takes it off."""
        place = _Place(listener, self._present() if heard else None)
        self._places[place] = None
        # Later, so that the caller holds what this returns when its listener runs.
        self._environment.soon(lambda: self._call(place))
        return lambda: self._places.pop(place, None)

    def tell(self, state: T) -> None:
        for place in list(self._places):
            self._call(place, state)

    def _call(self, place: _Place[T], told: T | None = None) -> None:
        # A listener that was called before this one may have changed things: the older state would be heard last.
        present = self._present()
        state = told if present is None else present
        if state is None or state is place.heard or place not in self._places:
            return
        place.heard = state
        try:
            place.listener(state)
        except (Exception, CancelledError) as error:
            # Raised here it would stop the other listeners and the connection.
            self._environment.report(error, "a listener of keycast failed")
