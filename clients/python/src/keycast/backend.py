"""A backend's calls to a gateway's internal listener (docs/http-api.md), collected, and repeated where that is safe.

And the check of Keycast's calls to a backend.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote, urlsplit

from .connection.backoff import backoff_ms
from .random_text import random_text

# A call is made anew, and signed anew, each time: an older one was recorded by somebody, or clocks differ by more.
_SIGNED_SECONDS_MAX = 300

# As many keys, and as many users, as `POST /v1/refresh` takes.
_KEYS_MAX = 5_000
_USERS_MAX = 1_000

# A backend names all keys of one change within this time.
_COLLECT_SECONDS = 0.03

# Above the 5 s in which a gateway answers each of these calls, so that its own error comes first.
_TIMEOUT_SECONDS = 10

# With the waits between them a call ends within 70 s, but for what `Retry-After` adds.
_TRIES_MAX = 5

# Who waits for a call that blocks is mostly a user, for a page.
_PATIENCE_SECONDS = 5.0

# A longer wait is the caller's to decide: the error says how long.
_RETRY_AFTER_SECONDS_MAX = 30

# Answers of a gateway, or of what stands before it, that a later try may change (RFC 9110 section 15).
_PASSING = frozenset((408, 429, 502, 503, 504))

# No gateway answers a call with so much.
_ANSWER_BYTES_MAX = 16 * 1024**2

# So many requests are under way at once; the others wait, within their time.
_THREADS_MAX = 64

# A batch publishes into so many rooms at a time.
_ROOMS_MAX = 8


_T = TypeVar("_T")


def is_from_keycast(
    signature: str | None,
    body: bytes,
    secrets: str | Iterable[str],
    max_age: float = _SIGNED_SECONDS_MAX,
    now: Callable[[], float] = time.time,
) -> bool:
    """Whether a call to this backend (`notify` in keycast.yaml) is Keycast's, and of now.

    `signature` is the header `Keycast-Signature`, `body` what came with it, before anything parsed it. Any of the secrets
    may have signed. `max_age` is in seconds.
    """
    first, *signed = (signature or "").split(",")
    said = re.fullmatch(r"t=([0-9]{1,12})", first)
    if not said or abs(now() - int(said[1])) > max_age:
        return False
    given = [each.removeprefix("v1=") for each in signed if re.fullmatch(r"v1=[0-9a-f]{64}", each)]
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = hmac.new(secret.encode(), said[1].encode() + b"." + body, "sha256").hexdigest()
        if any(hmac.compare_digest(each, expected) for each in given):
            return True
    return False


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


@dataclass
class _Refresh:
    """A call of `refresh`, or a part of it."""

    keys: list[str]
    ended: asyncio.Future[None]


@dataclass
class _Batch:
    """What is collected for the same users."""

    calls: list[_Refresh] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


class Backend:
    """Calls of one program. All of it belongs to the loop that runs.

    :param url: of the internal listener of any gateway, such as ``http://127.0.0.1:8081``
    :param token: one of the gateway's ``API_TOKENS``, with the scopes of the calls that are made
    :raises ValueError: for a URL that is none, or a token that no header takes
    """

    def __init__(self, url: str, token: str) -> None:
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
        # For tests: waits, and chance.
        self._sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
        self._random = random.random
        self._patience = math.inf
        self._collected: dict[tuple[str, ...], _Batch] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: set[asyncio.Future[Any]] = set()
        self._is_closed = False
        # Not the loop's own: with a gateway that hangs, whatever else the program has done there would wait, too, such as
        # each look-up of a name.
        self._threads = ThreadPoolExecutor(_THREADS_MAX, "keycast")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def refresh(self, keys: str | Iterable[str], users: Iterable[str] = ()) -> asyncio.Future[None]:
        """Has keys fetched now; ends when every node was told. Keys named within 30 ms leave in one request.

        :param users: of keys that have a value per user: theirs alone
        """
        parts = _parts([keys] if isinstance(keys, str) else keys, _KEYS_MAX)
        groups = _parts(sorted(users), _USERS_MAX) or [[]]
        self._check_open()
        ended = [self._collect(part, tuple(group)) for group in groups for part in parts]
        return self._follow(asyncio.get_running_loop().create_task(_all(ended)))

    async def publish(
        self, key: str, data: Any, *, sender: str | None = None, message_id: str | None = None
    ) -> dict[str, Any]:
        """Publishes into a room; gives `epoch`, `seq`, `at` and `messageId`.

        A try that got no answer is repeated with the same id, which is kept once.
        """
        message = {"key": key, "data": data, "messageId": message_id or random_text()}
        return await self._call(self._publish_one(message if sender is None else message | {"from": sender}))

    async def publish_all(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Publishes many: those of one room one after the other, in the order given.

        Each has `key` and `data`, and may have `from` and `messageId`.
        """
        return await self._call(self._publish_many(messages))

    async def put(
        self, key: str, value: Any, *, content_type: str | None = None, order: int | None = None
    ) -> dict[str, Any]:
        """Hands over a key's value: any JSON, or with a `content_type` a text or bytes, sent as they are.

        Only with an `order` is it repeated: else it could come after a newer one.
        """
        body = _json(value) if content_type is None else value.encode() if isinstance(value, str) else value
        return await self._hand_over("PUT", key, order, body, content_type or "application/json")

    async def delete(self, key: str, *, order: int | None = None) -> dict[str, Any]:
        """Says that a key has no value now."""
        return await self._hand_over("DELETE", key, order)

    async def put_all(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`put` and `delete` for many keys, 10,000 at most; gives `taken` and `older`.

        Each has `key`, and `value` or `"delete": True`, and may have `contentType` and `order`. Repeated only where
        each has an `order`.
        """
        has_order = all(line.get("order") is not None for line in lines)
        body = b"".join(_json(line) + b"\n" for line in lines)
        return await self._call(self._ask_until(has_order, "POST", "/v1/values", body))

    async def revoke(
        self, *, sub: str | None = None, before: int | None = None, jti: str | None = None
    ) -> dict[str, Any]:
        """Signs a user out, or refuses one token; `before` in Unix seconds."""
        return await self._call(self._post("/v1/revoke", {"sub": sub, "before": before, "jti": jti}))

    async def access(
        self, key: str, *, token: str | None = None, sub: str | None = None, keys: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Says who may use a key, and by which rule."""
        return await self._call(self._post("/v1/access", {"key": key, "token": token, "sub": sub, "keys": keys}))

    async def ask_again(self, *, user: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Says that the backend decides otherwise about a user, a key or both: it is asked again."""
        about = {name: value for name, value in (("user", user), ("key", key)) if value is not None}
        return await self._call(self._post("/v1/access", {"ask": about}))

    async def close(self) -> None:
        """Sends what was collected, and ends when each call has ended."""
        self._is_closed = True
        self._send_all()
        while self._under_way:
            await asyncio.wait(self._under_way)
        self._threads.shutdown(wait=False)

    def _check_open(self) -> None:
        if self._is_closed:
            raise CallError("closed", "close() was called")

    def _follow(self, task: asyncio.Task[_T]) -> asyncio.Task[_T]:
        """Has `close` wait for it."""
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _call(self, call: Coroutine[Any, Any, _T]) -> _T:
        try:
            self._check_open()
        except CallError:
            call.close()
            raise
        return await self._follow(asyncio.create_task(call))

    def _collect(self, keys: list[str], users: tuple[str, ...]) -> asyncio.Future[None]:
        """Takes keys of one request at most."""
        batch = self._collected.get(users)
        if batch and len(batch.keys) + len(keys) > _KEYS_MAX:
            self._send(users)
            batch = None
        if not batch:
            batch = self._collected[users] = _Batch()
        loop = asyncio.get_running_loop()
        call = _Refresh(keys, loop.create_future())
        batch.keys.update(keys)
        batch.calls.append(call)
        self._timer = self._timer or loop.call_later(_COLLECT_SECONDS, self._send_all)
        return call.ended

    def _send_all(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        for users in list(self._collected):
            self._send(users)

    def _send(self, users: tuple[str, ...]) -> None:
        calls = self._collected.pop(users).calls
        self._follow(asyncio.get_running_loop().create_task(self._refresh_all(calls, users)))

    async def _refresh_all(self, calls: list[_Refresh], users: tuple[str, ...]) -> None:
        """Refreshes what calls name, so that a wrong key fails alone.

        A gateway refuses all keys of a request for one that is wrong: then each half of the calls has one of its own.
        """
        keys = list(dict.fromkeys(key for call in calls for key in call.keys))
        try:
            await self._post("/v1/refresh", {"keys": keys, "users": list(users) or None})
        # Any error, also of keys that are no texts: a call that nobody ended would be waited for for ever, by `close` too.
        except Exception as error:
            if getattr(error, "status", 400) == 400 and len(calls) > 1:
                half = len(calls) // 2
                await asyncio.gather(self._refresh_all(calls[:half], users), self._refresh_all(calls[half:], users))
                return
            for call in calls:
                if not call.ended.done():  # its caller may have given up
                    call.ended.set_exception(error)
        else:
            for call in calls:
                if not call.ended.done():
                    call.ended.set_result(None)

    async def _publish_one(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._post("/v1/publish", message) | {"messageId": message["messageId"]}
        except CallError as error:
            error.messages = [message]
            raise

    async def _publish_many(self, given: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        messages = [{"messageId": random_text(), **message} for message in given]
        rooms: dict[str, list[int]] = {}
        for index, message in enumerate(messages):
            # What is no JSON fails before anything is sent: later nobody would be told what was kept.
            _json(message)
            rooms.setdefault(message["key"], []).append(index)
        kept: dict[int, dict[str, Any]] = {}
        failures: list[CallError] = []
        waiting = iter(rooms.values())

        async def publish_rooms() -> None:
            for room in waiting:
                try:
                    for index in room:
                        kept[index] = await self._publish_one(messages[index])
                except CallError as error:
                    # The room's next message would come before the one that failed.
                    failures.append(error)

        await self._together(publish_rooms() for _ in range(_ROOMS_MAX))
        if failures:
            failures[0].messages = [message for index, message in enumerate(messages) if index not in kept]
            raise failures[0]
        return [kept[index] for index in range(len(messages))]

    async def _hand_over(
        self, method: str, key: str, order: int | None, body: bytes | None = None, content_type: str | None = None
    ) -> dict[str, Any]:
        headers = {"Content-Type": content_type} if content_type else {}
        if order is not None:
            headers["Keycast-Order"] = str(order)
        path = f"/v1/values/{quote(key, safe='')}"
        return await self._call(self._ask_until(order is not None, method, path, body, headers))

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Makes a call that may be repeated; fields of None are left out."""
        fields = {name: value for name, value in body.items() if value is not None or name == "data"}
        return await self._ask_until(True, "POST", path, _json(fields), {"Content-Type": "application/json"})

    async def _ask_until(
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
        # What stands before a gateway may answer in its place.
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

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*calls)

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


class _Unlooped(Backend):
    """Coroutines that never wait for a loop, so that any thread can run them to their end."""

    def __init__(self, url: str, token: str, patience: float) -> None:
        super().__init__(url, token)
        self._patience = patience
        self._sleep = self._block

    async def refresh_now(self, keys: str | Iterable[str], users: Iterable[str]) -> None:
        for group in _parts(sorted(users), _USERS_MAX) or [[]]:
            for part in _parts([keys] if isinstance(keys, str) else keys, _KEYS_MAX):
                await self._post("/v1/refresh", {"keys": part, "users": group or None})

    async def _block(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _call(self, call: Coroutine[Any, Any, _T]) -> _T:
        return await call

    async def _exchange_within(self, timeout: float, *request: Any) -> tuple[int, str | None, bytes]:
        return self._exchange(timeout, *request)

    async def _together(self, calls: Iterable[Coroutine[Any, Any, None]]) -> None:
        for call in calls:
            await call


class BlockingBackend:
    """The calls of :class:`Backend` for programs without asyncio, such as Django and Flask.

    Each returns when it has ended. Any thread may call, also at once, and nothing is to be closed. In a loop, where a call
    would stop everything else, use :class:`Backend`.

    :param patience: seconds after which a request is not repeated any more, and no answer is waited for
    :raises ValueError: for a URL that is none
    """

    def __init__(self, url: str, token: str, patience: float = _PATIENCE_SECONDS) -> None:
        self._calls = _Unlooped(url, token, patience)

    def refresh(self, keys: str | Iterable[str], users: Iterable[str] = ()) -> None:
        """Has keys fetched now; returns when every node was told. Name all keys of a change in one call."""
        _end(self._calls.refresh_now(keys, users))

    def publish(
        self, key: str, data: Any, *, sender: str | None = None, message_id: str | None = None
    ) -> dict[str, Any]:
        """Publishes into a room; gives `epoch`, `seq`, `at` and `messageId`."""
        return _end(self._calls.publish(key, data, sender=sender, message_id=message_id))

    def publish_all(self, messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Publishes many, one after the other. Patience is for each."""
        return _end(self._calls.publish_all(messages))

    def put(
        self, key: str, value: Any, *, content_type: str | None = None, order: int | None = None
    ) -> dict[str, Any]:
        """Hands over a key's value: any JSON, or with a `content_type` a text or bytes."""
        return _end(self._calls.put(key, value, content_type=content_type, order=order))

    def delete(self, key: str, *, order: int | None = None) -> dict[str, Any]:
        """Says that a key has no value now."""
        return _end(self._calls.delete(key, order=order))

    def put_all(self, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`put` and `delete` for many keys, 10,000 at most; gives `taken` and `older`."""
        return _end(self._calls.put_all(lines))

    def revoke(self, *, sub: str | None = None, before: int | None = None, jti: str | None = None) -> dict[str, Any]:
        """Signs a user out, or refuses one token; `before` in Unix seconds."""
        return _end(self._calls.revoke(sub=sub, before=before, jti=jti))

    def access(
        self, key: str, *, token: str | None = None, sub: str | None = None, keys: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Says who may use a key, and by which rule."""
        return _end(self._calls.access(key, token=token, sub=sub, keys=keys))

    def ask_again(self, *, user: str | None = None, key: str | None = None) -> dict[str, Any]:
        """Says that the backend decides otherwise about a user, a key or both: it is asked again."""
        return _end(self._calls.ask_again(user=user, key=key))


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


def _end(call: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine that never waits for a loop."""
    try:
        call.send(None)
    except StopIteration as end:
        return cast(_T, end.value)
    raise AssertionError("it waits for a loop")


async def _all(futures: Iterable[asyncio.Future[None]]) -> None:
    await asyncio.gather(*futures)


def _json(value: Any) -> bytes:
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


def _parts(names: Iterable[str], count: int) -> list[list[str]]:
    """Each name once, so many in a part."""
    every = list(dict.fromkeys(names))
    return [every[start : start + count] for start in range(0, len(every), count)]
