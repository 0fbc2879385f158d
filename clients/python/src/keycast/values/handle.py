"""A handle, which an application holds of a key: listeners and an async iterator in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType

from .entry import NOTHING, Entry, ValueState


class Value:
    """A subscription to a key, shared with all other handles of the key.

    `async for` gives the state, then the latest after each change but of `health`: those that came while the loop was
    busy are left out. It ends when the handle is closed, and raises the error that ends the subscription. After
    `forbidden` it goes on.
    """

    def __init__(self, entry: Entry, ask: Callable[[Entry], None], on_close: Callable[[], None]) -> None:
        self._entry = entry
        self._ask = ask
        self._on_close = on_close
        self._ends: dict[Callable[[], None], None] = {}
        self._closed = False

    @property
    def key(self) -> str:
        return self._entry.key

    @property
    def state(self) -> ValueState:
        return self._entry.state

    def on_change(self, listener: Callable[[ValueState], None]) -> Callable[[], None]:
        """Calls a listener at every change, and once soon after this with what is known. Gives what takes it off."""
        return self._listen(listener)

    def retry(self) -> None:
        """Asks the gateway now how the key stands, also after an error that ended the subscription."""
        self._ask(self._entry)

    def close(self) -> None:
        """The subscription ends with the last handle of its key."""
        if self._closed:
            return
        self._closed = True
        for end in list(self._ends):
            end()
        self._on_close()

    def __enter__(self) -> Value:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aiter__(self) -> AsyncIterator[ValueState]:
        if self._closed:
            return
        entry = self._entry
        woken = asyncio.Event()
        self._ends[woken.set] = None
        remove = self._listen(lambda _: woken.set(), heard=True)
        given = NOTHING
        try:
            while not self._closed:
                woken.clear()
                state = entry.state
                if entry.ended:
                    if entry.was_closed or state.error is None:
                        return
                    raise state.error.with_traceback(None)
                if entry.news is not given:
                    given = entry.news
                    yield state
                else:
                    await woken.wait()
        finally:
            self._ends.pop(woken.set, None)
            remove()

    def _listen(self, listener: Callable[[ValueState], None], heard: bool = False) -> Callable[[], None]:
        if self._closed:
            return lambda: None
        take_off = self._entry.listeners.add(listener, heard)

        def remove() -> None:
            self._ends.pop(remove, None)
            take_off()

        self._ends[remove] = None
        return remove
