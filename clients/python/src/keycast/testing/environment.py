"""What the client under test takes for the world: a clock that moves when told, and sockets to the made-up gateway."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from ..environment import LoopEnvironment


class FakeTimer:
    def __init__(self, at_ms: float, task: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.task = task
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeSocket:
    def __init__(
        self,
        on_request: Callable[[dict[str, Any]], None],
        on_end: Callable[[], None],
        on_message: Callable[[str | bytes], None],
        on_close: Callable[[int, str], None],
    ) -> None:
        self._on_request = on_request
        self._on_end = on_end
        self._on_message = on_message
        self._on_close = on_close
        #: What is still to be said, the message under way first.
        self._unsaid: deque[str | bytes] = deque()
        self.is_open = True

    def send(self, text: str) -> None:
        if self.is_open:
            self._on_request(json.loads(text))

    def close(self, code: int) -> None:
        if self.is_open:
            self.is_open = False
            self._on_end()

    def say(self, message: dict[str, Any], body: bytes | None = None) -> None:
        text = json.dumps(message)
        self._unsaid.append(text if body is None else f"{text}\n".encode() + body)
        # Over a network, too, the answer to what a listener sends comes after the message that the listener is told.
        if len(self._unsaid) > 1:
            return
        while self._unsaid:
            if self.is_open:
                self._on_message(self._unsaid[0])
            self._unsaid.popleft()

    def lose(self) -> None:
        if self.is_open:
            self.is_open = False
            self._on_end()
            self._on_close(1006, "")


class FakeEnvironment(LoopEnvironment):
    def __init__(self, on_request: Callable[[dict[str, Any]], None], on_end: Callable[[], None]) -> None:
        """`on_request` is called with each message of the client, `on_end` where its session is over."""
        super().__init__()
        self._on_request = on_request
        self._on_end = on_end
        self._now_ms = 0.0
        self._timers: list[FakeTimer] = []
        #: The latest.
        self.socket: FakeSocket

    def now(self) -> float:
        return self._now_ms

    def date(self) -> float:
        return super().date() + self._now_ms

    def random(self) -> float:
        return 1.0  # Waits are as long as they can be.

    def later(self, ms: float, task: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(self._now_ms + ms, task)
        self._timers.append(timer)
        return timer

    def dial(
        self, url: str, on_message: Callable[[str | bytes], None], on_close: Callable[[int, str], None]
    ) -> FakeSocket:
        self.socket = FakeSocket(self._on_request, self._on_end, on_message, on_close)
        return self.socket

    def pass_ms(self, ms: float) -> None:
        until_ms = self._now_ms + ms
        while True:
            self._timers = [timer for timer in self._timers if not timer.is_cancelled]
            first = min(self._timers, key=lambda timer: timer.at_ms, default=None)
            if first is None or first.at_ms > until_ms:
                break
            self._timers.remove(first)
            self._now_ms = first.at_ms
            first.task()
        self._now_ms = until_ms
