"""The gateway that is called, over HTTP: one call, and when it is made again."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import urlsplit

from ..connection.backoff import backoff_ms

# Above the 5 s in which a gateway answers each of these calls, so that its own error comes first.
_TIMEOUT_SECONDS = 10

# With the waits between them a call ends within 70 s, but for what `Retry-After` adds.
_TRIES_MAX = 5

# A longer wait is the caller's to decide: the error says how long.
_RETRY_AFTER_SECONDS_MAX = 30

# Answers of a gateway, or of what stands before it, that a later try may change (RFC 9110 section 15).
_PASSING = frozenset((408, 429, 502, 503, 504))

# No gateway answers a call with so much.
_ANSWER_BYTES_MAX = 16 * 1024**2

# So many requests are under way at once; the others wait, within their time.
_THREADS_MAX = 64


class CallError(Exception):
    """A call has failed.

    `code` is the gateway's; `no_answer` where none came from one, so that the call was perhaps carried out; `closed`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int | None = None,
        retry_after: float | None = None,
        problems: Sequence[str] = (),
        lines: Sequence[int] = (),
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        #: The status of the answer, if one came.
        self.status = status
        #: Seconds. Where given, trying again makes sense after so long.
        self.retry_after = retry_after
        #: Each thing that is wrong with a call that names many, ten at most.
        self.problems = problems
        #: Of `put_all`: the lines that were not taken, or perhaps were, counted from 1.
        self.lines = lines
        #: Of `publish` and `publish_all`: those that are not known to be kept, with their ids, to be published again.
        self.messages: list[dict[str, Any]] = []

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Gateway:
    """Any gateway of a system, as a program with a loop calls it.

    :raises ValueError: for a URL that is none, or a token that no header takes
    """

    def __init__(self, url: str, token: str, patience: float = math.inf) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a gateway's internal listener, such as http://127.0.0.1:8081")
        # The header would be refused at each call, by an error that shows the token.
        if not re.fullmatch(r"[ -~]+", token):
            raise ValueError("the token has a character that no header takes, such as a line break at its end")
        self._base = url.rstrip("/")
        self._connection = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._token = token
        # Seconds after which a call is not made again.
        self._patience = patience
        # For tests: waits, and chance.
        self._sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
        self._random = random.random
        # Not the loop's own: with a gateway that hangs, whatever else the program has done there would wait, too, such as
        # each look-up of a name.
        self._threads = ThreadPoolExecutor(_THREADS_MAX, "keycast")

    def close(self) -> None:
        """Ends its threads. No call may be under way."""
        self._threads.shutdown(wait=False)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Makes a call that may be repeated; fields of None are left out."""
        fields = {name: value for name, value in body.items() if value is not None or name == "data"}
        return await self.ask(True, "POST", path, as_json(fields), {"Content-Type": "application/json"})

    async def ask(
        self, may_repeat: bool, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Repeats a call if twice is as good as once, and there is time."""
        ends_at = time.monotonic() + self._patience
        failures = 0
        while True:
            left = min(_TIMEOUT_SECONDS, ends_at - time.monotonic())
            try:
                return await self._ask_once(left, method, path, body, headers or {})
            except CallError as error:
                is_passing = error.status is None or error.status in _PASSING
                retry_after = error.retry_after or 0
                wait = retry_after + backoff_ms(self._random(), failures) / 1_000
                failures += 1
                if (
                    not (may_repeat and is_passing)
                    or failures == _TRIES_MAX
                    or retry_after > _RETRY_AFTER_SECONDS_MAX
                    or time.monotonic() + wait >= ends_at
                ):
                    raise
            await self._sleep(wait)

    async def _ask_once(
        self, timeout: float, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        where = f"{method} {self._base}{path}"
        try:
            status, retry_after, text = await self._exchange_within(timeout, method, path, body, headers)
        except (OSError, HTTPException) as error:
            reason = f"nothing within {timeout:.3g} s" if isinstance(error, TimeoutError) else str(error)
            raise CallError("no_answer", f"{where}: {reason or type(error).__name__}") from error
        answer = _object(text)
        if 200 <= status < 300 and answer is not None:
            return answer
        fields = answer or {}
        after_ms = fields.get("retryAfterMs")
        # A proxy may answer in the gateway's place.
        after = after_ms / 1_000 if isinstance(after_ms, int | float) else _seconds(retry_after)
        raise CallError(
            fields.get("code", "no_answer"),
            fields.get("message", f"{where}: {status}, not from a gateway"),
            status,
            after,
            fields.get("problems", ()),
            fields.get("lines", ()),
        )

    async def _exchange_within(self, timeout: float, *request: Any) -> tuple[int, str | None, bytes]:
        async with asyncio.timeout(timeout):
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._exchange, timeout, *request
            )

    def _exchange(
        self, timeout: float, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, str | None, bytes]:
        """Makes one request, in a thread."""
        connection = self._connection(self._host, self._port, timeout=timeout)
        try:
            connection.connect()
            with _ended_after(timeout, connection):
                connection.request(
                    method, self._path + path, body, {"Authorization": f"Bearer {self._token}", **headers}
                )
                response = connection.getresponse()
                text = response.read(_ANSWER_BYTES_MAX + 1)
                if len(text) > _ANSWER_BYTES_MAX:
                    raise HTTPException(f"an answer of more than {_ANSWER_BYTES_MAX} bytes")
                return response.status, response.getheader("Retry-After"), text
        finally:
            connection.close()


class BlockingGateway(Gateway):
    """Coroutines that never wait for a loop, so that any thread can run them to their end."""

    def __init__(self, url: str, token: str, patience: float) -> None:
        super().__init__(url, token, patience)
        self._sleep = self._block

    async def _block(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _exchange_within(self, timeout: float, *request: Any) -> tuple[int, str | None, bytes]:
        return self._exchange(timeout, *request)


@contextmanager
def _ended_after(timeout: float, connection: HTTPConnection) -> Iterator[None]:
    """Ends an exchange as a whole. The time-out of a socket is for each piece: an answer could come byte by byte for ever."""
    # The connection forgets it once the head of an answer is there.
    socket = connection.sock
    is_over = threading.Event()

    def hang_up() -> None:
        is_over.set()
        with suppress(OSError):
            socket.shutdown(SHUT_RDWR)

    timer = threading.Timer(timeout, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, HTTPException) as error:
        if is_over.is_set():
            raise TimeoutError from error
        raise
    else:
        # An answer of no length looks whole where it was cut.
        if is_over.is_set():
            raise TimeoutError
    finally:
        timer.cancel()


def as_json(value: Any) -> bytes:
    # A lone surrogate has no UTF-8, and stands in JSON only as it is escaped.
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        read = json.loads(text)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def _seconds(header: str | None) -> float | None:
    """Of seconds alone: a gateway and its proxy send no date."""
    return float(header) if header and header.isascii() and header.isdigit() else None
