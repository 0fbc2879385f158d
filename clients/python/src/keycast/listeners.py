"""The functions that want to hear of one thing. A new one is also told how the thing stands already."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Generic, TypeVar

from .environment import Environment

T = TypeVar("T")


class _Place(Generic[T]):
    def __init__(self, listener: Callable[[T], None]) -> None:
        self.listener = listener
        self.heard = False
        #: What it was called with last.
        self.told: T | None = None


class Listeners(Generic[T]):
    def __init__(self, environment: Environment, present: Callable[[], T | None]) -> None:
        self._environment = environment
        self._present = present
        self._places: dict[_Place[T], None] = {}

    def add(self, listener: Callable[[T], None], heard: bool = False) -> Callable[[], None]:
        """Calls it at every change, and once soon unless it has heard how things stand. Gives what takes it off."""
        place = _Place(listener)
        place.heard = heard
        self._places[place] = None
        if not heard:
            # Later, so that the caller holds what this returns when its listener runs.
            self._environment.soon(lambda: self._introduce(place))
        return lambda: self._places.pop(place, None)

    def tell(self, state: T) -> None:
        for place in list(self._places):
            # A listener before this one may have changed it: then all have been told, and an older state must not be
            # the last that this one hears.
            present = self._present()
            latest = state if present is None else present
            if place in self._places and place.told is not latest:
                self._call(place, latest)

    def _introduce(self, place: _Place[T]) -> None:
        state = self._present()
        if not place.heard and place in self._places and state is not None:
            self._call(place, state)

    def _call(self, place: _Place[T], state: T) -> None:
        place.heard = True
        place.told = state
        try:
            place.listener(state)
        except (Exception, CancelledError) as error:
            # Raised here it would stop the other listeners and the connection.
            self._environment.report(error, "a listener of keycast failed")
