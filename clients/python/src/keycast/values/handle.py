"""A handle, which an application holds of a key: listeners and an async iterator in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from ..handle import Handle
from .entry import NOTHING, Entry, ValueState


class Value(Handle):
    """A subscription to a key, shared with all other handles of the key.

    `async for` gives the state, then the latest after each change but of `health`: those that came while the loop was
    busy are left out. It ends when the handle is closed, and raises the error that ends the subscription. After
    `forbidden` it goes on.
    """

    def __init__(self, entry: Entry, ask: Callable[[Entry], None], on_close: Callable[[], None]) -> None:
        super().__init__(entry)
        self._entry = entry
        self._ask = ask
        self._let_go = on_close

    @property
    def key(self) -> str:
        return self._entry.key

    @property
    def state(self) -> ValueState:
        return self._entry.state

    def on_change(self, listener: Callable[[ValueState], None]) -> Callable[[], None]:
        """Calls a listener at every change, and once soon after this with what is known. Gives what takes it off."""
        return self._listen(self._entry.listeners, listener)

    def retry(self) -> None:
        """Asks the gateway now how the key stands, also after an error that ended the subscription."""
        self._ask(self._entry)

    async def __aiter__(self) -> AsyncIterator[ValueState]:
        if self._closed:
            return
        entry = self._entry
        woken = asyncio.Event()
        self._ends[woken.set] = None
        remove = self._listen(entry.listeners, lambda _: woken.set(), heard=True)
        given = NOTHING
        try:
            while not self._closed:
                woken.clear()
                if self._has_ended():
                    return
                if entry.news is not given:
                    given = entry.news
                    yield entry.state
                else:
                    await woken.wait()
        finally:
            self._ends.pop(woken.set, None)
            remove()

    def _on_close(self) -> None:
        self._let_go()
