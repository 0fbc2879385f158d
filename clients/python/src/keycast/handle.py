"""What every handle has in common: its listeners and loops end with it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from .environment import Link
from .listeners import Listeners

T = TypeVar("T")


class Shared(Protocol):
    """What all handles of a key share."""

    @property
    def state(self) -> Any: ...

    @property
    def ended(self) -> bool:
        """Whether the subscription is over."""

    @property
    def link(self) -> Link: ...


class Handle:
    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._ends: dict[Callable[[], None], None] = {}
        self._closed = False

    def close(self) -> None:
        """The subscription ends with the last handle of its key. Publishes are still settled."""
        if self._closed:
            return
        self._closed = True
        for end in list(self._ends):
            end()
        self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _on_close(self) -> None:
        raise NotImplementedError

    def _has_ended(self) -> bool:
        """Whether a loop is over. Raises why, unless the application closed the client."""
        shared = self._shared
        error = shared.state.error
        if shared.ended and error and not shared.link.is_closed:
            raise error.with_traceback(None)
        return shared.ended

    def _listen(
        self, listeners: Listeners[T], listener: Callable[[T], None], heard: bool = False
    ) -> Callable[[], None]:
        if self._closed:
            return lambda: None
        take_off = listeners.add(listener, heard)

        def remove() -> None:
            self._ends.pop(remove, None)
            take_off()

        self._ends[remove] = None
        return remove
