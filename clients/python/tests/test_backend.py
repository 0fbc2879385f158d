"""A backend's calls, made to a gateway that is made up."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from keycast.backend import Backend, BlockingBackend, CallError, is_from_keycast
from keycast.backend import gateway as module


@dataclass
class Call:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    status: int = 200
    body: Any = None
    retry_after: str | None = None
    lost: bool = False


class Gateway:
    """Answers as it is told; waits of the backend end at once and are noted."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.calls: list[Call] = []
        self.waits: list[float] = []

    @property
    def bodies(self) -> list[Any]:
        return [call.json for call in self.calls]

    def backend(self) -> Backend:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        made = Backend(self.url, "secret")
        made._gateway._sleep, made._gateway._random = sleep, lambda: 0.0
        return made

    def blocking(self, patience: float = 5.0) -> BlockingBackend:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        made = BlockingBackend(self.url, "secret", patience)
        gateway = made._backend._gateway
        gateway._sleep, gateway._random = sleep, lambda: 0.0
        return made


@contextmanager
def gateway(answer_of: Callable[[Call, int], Answer]) -> Iterator[Gateway]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            made.calls.append(Call(self.command, self.path, dict(self.headers), body))
            answer = answer_of(made.calls[-1], len(made.calls))
            if answer.lost:
                return
            self.send_response(answer.status)
            if answer.retry_after:
                self.send_header("Retry-After", answer.retry_after)
            self.end_headers()
            body_sent = answer.body if isinstance(answer.body, str) else json.dumps(answer.body or {})
            self.wfile.write(body_sent.encode())

        do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Gateway(f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_keys_named_at_once_leave_in_one_request_each_once() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            await asyncio.gather(backend.refresh("a:1"), backend.refresh(["a:2", "a:1"]), backend.refresh({"a:3"}))

    with gateway(lambda *_: Answer(202)) as made:
        asyncio.run(look())
        assert made.bodies == [{"keys": ["a:1", "a:2", "a:3"]}]
        assert (made.calls[0].method, made.calls[0].path) == ("POST", "/v1/refresh")
        assert made.calls[0].headers["Authorization"] == "Bearer secret"
        assert made.calls[0].headers["Content-Type"] == "application/json"


def test_keys_of_the_same_users_leave_together_apart_from_the_others() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            await asyncio.gather(
                backend.refresh("a:1", ["ann", "bob"]),
                backend.refresh("a:2", ["bob", "ann"]),
                backend.refresh("a:3"),
                backend.refresh([]),
            )

    with gateway(lambda *_: Answer(202)) as made:
        asyncio.run(look())
        assert sorted(made.bodies, key=lambda body: body["keys"]) == [
            {"keys": ["a:1", "a:2"], "users": ["ann", "bob"]},
            {"keys": ["a:3"]},
        ]


def test_no_request_names_more_than_5000_keys_or_1000_users() -> None:
    keys = [f"a:{number}" for number in range(7_000)]
    users = [f"u{number}" for number in range(1_500)]

    async def look() -> None:
        async with made.backend() as backend:
            await asyncio.gather(backend.refresh(keys), backend.refresh("b:1", users))

    with gateway(lambda *_: Answer(202)) as made:
        asyncio.run(look())
        shared = [body["keys"] for body in made.bodies if "users" not in body]
        assert sorted(map(len, shared)) == [2_000, 5_000]
        assert {key for part in shared for key in part} == set(keys)
        named = [body["users"] for body in made.bodies if "users" in body]
        assert sorted(map(len, named)) == [500, 1_000]
        assert {user for part in named for user in part} == set(users)


def test_a_wrong_key_fails_alone_whatever_it_was_collected_with() -> None:
    def answer(call: Call, _: int) -> Answer:
        if b"bad" in call.body:
            return Answer(400, {"code": "bad_request", "message": "m", "problems": ["keys[0]: no such namespace"]})
        return Answer(202)

    async def look() -> None:
        async with made.backend() as backend:
            calls = [backend.refresh(key) for key in ("a:1", "a:2", "bad:1", "a:3", "a:4")]
            ends = await asyncio.gather(*calls, return_exceptions=True)
        failed = ends.pop(2)
        assert ends == [None] * 4
        assert isinstance(failed, CallError)
        assert (failed.code, failed.status, failed.problems) == ("bad_request", 400, ["keys[0]: no such namespace"])

    with gateway(answer) as made:
        asyncio.run(look())


def test_a_call_is_repeated_after_the_time_that_the_answer_says_or_else_at_a_random_one() -> None:
    answers = [
        Answer(503, {"code": "fetcher_unavailable", "message": "m", "retryAfterMs": 700}),
        Answer(429, "<html>", retry_after="2"),
        Answer(lost=True),
        Answer(202),
    ]

    async def look() -> None:
        async with made.backend() as backend:
            await backend.refresh("a:1")

    with gateway(lambda _, count: answers[count - 1]) as made:
        asyncio.run(look())
        assert made.waits == [0.7, 2, 0]


@pytest.mark.parametrize(
    ("answer", "code", "tries"),
    [
        (Answer(503, {"code": "journal_unavailable", "message": "m"}), "journal_unavailable", 5),
        (Answer(503, "", retry_after="31"), "no_answer", 1),
        (Answer(503, {"retryAfterMs": "soon"}), "no_answer", 5),
        (Answer(507, {"code": "log_full", "message": "m"}), "log_full", 1),
        (Answer(302, ""), "no_answer", 1),
    ],
)
def test_repeating_ends(answer: Answer, code: str, tries: int) -> None:
    async def look() -> None:
        async with made.backend() as backend:
            with pytest.raises(CallError) as failed:
                await backend.publish("room:1", None, message_id="mine-mine-mine-mine")
        assert (failed.value.code, failed.value.status) == (code, answer.status)
        assert failed.value.messages == [{"key": "room:1", "data": None, "messageId": "mine-mine-mine-mine"}]

    with gateway(lambda *_: answer) as made:
        asyncio.run(look())
        assert len(made.calls) == tries
        assert made.bodies[0]["data"] is None


def test_a_message_is_repeated_with_its_id() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            kept = await backend.publish("room:1", {"text": "ä\ud800"}, sender="ann")
        first, again = made.bodies
        assert first == again
        assert first == {
            "key": "room:1",
            "data": {"text": "ä\ud800"},
            "from": "ann",
            "messageId": kept["messageId"],
        }
        assert len(kept["messageId"]) == 22 and kept["seq"] == 7

    with gateway(lambda _, count: Answer(lost=True) if count == 1 else Answer(body={"seq": 7})) as made:
        asyncio.run(look())


def test_many_messages_come_in_order_and_those_that_are_left_can_be_given_again() -> None:
    is_full = True

    def answer(call: Call, _: int) -> Answer:
        if is_full and (call.json["key"], call.json["data"]) == ("room:1", 2):
            return Answer(507, {"code": "log_full", "message": "full"})
        return Answer(body={"seq": call.json["data"]})

    async def look() -> None:
        nonlocal is_full
        async with made.backend() as backend:
            messages = [{"key": key, "data": data} for data in (1, 2, 3) for key in ("room:1", "room:2")]
            with pytest.raises(CallError, match="log_full") as failed:
                await backend.publish_all(messages)
            left = failed.value.messages
            assert [(message["key"], message["data"]) for message in left] == [("room:1", 2), ("room:1", 3)]
            assert [body["data"] for body in made.bodies if body["key"] == "room:2"] == [1, 2, 3]
            assert [body["data"] for body in made.bodies if body["key"] == "room:1"] == [1, 2]
            is_full = False
            made.calls.clear()
            assert [kept["seq"] for kept in await backend.publish_all(left)] == [2, 3]
            assert made.bodies == left

    with gateway(answer) as made:
        asyncio.run(look())


def test_of_many_messages_none_is_sent_where_one_is_no_json() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            with pytest.raises(TypeError):
                await backend.publish_all([{"key": "room:1", "data": 1}, {"key": "room:2", "data": object()}])

    with gateway(lambda *_: Answer(body={"seq": 1})) as made:
        asyncio.run(look())
        assert made.calls == []


def test_a_value_is_handed_over_as_json_or_as_it_is_under_its_type() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            assert (await backend.put("a:1/b c?d=e", {"n": 1}, order=17))["taken"]
            await backend.put("a:2", "Milk", content_type="text/plain")
            await backend.put("a:2", b"\xff", content_type="image/png")
            await backend.delete("a:3")
            await backend.put_all([{"key": "a:1", "value": None}, {"key": "a:2", "delete": True, "order": 3}])

    with gateway(lambda *_: Answer(body={"taken": True})) as made:
        asyncio.run(look())
        assert [(call.method, call.path, call.body) for call in made.calls] == [
            ("PUT", "/v1/values/a%3A1%2Fb%20c%3Fd%3De", b'{"n":1}'),
            ("PUT", "/v1/values/a%3A2", b"Milk"),
            ("PUT", "/v1/values/a%3A2", b"\xff"),
            ("DELETE", "/v1/values/a%3A3", b""),
            ("POST", "/v1/values", b'{"key":"a:1","value":null}\n{"key":"a:2","delete":true,"order":3}\n'),
        ]
        assert made.calls[0].headers["Keycast-Order"] == "17"
        assert made.calls[1].headers["Content-Type"] == "text/plain"
        assert "Keycast-Order" not in made.calls[1].headers


def test_a_value_is_repeated_only_with_an_order() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            for order, tries in ((None, 1), (0, 5)):
                line = {"key": "a:1", "value": 1, "order": order}
                for call in (
                    backend.put("a:1", 1, order=order),
                    backend.delete("a:1", order=order),
                    backend.put_all([{"key": "a:2", "value": 1, "order": 1}, line]),
                ):
                    made.calls.clear()
                    with pytest.raises(CallError) as failed:
                        await call
                    assert (failed.value.lines, len(made.calls)) == ([1], tries)

    answer = Answer(503, {"code": "fetcher_unavailable", "message": "perhaps", "lines": [1]})
    with gateway(lambda *_: answer) as made:
        asyncio.run(look())


def test_users_are_signed_out_access_is_explained_and_decisions_are_asked_for_again() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            assert await backend.revoke(sub="ann") == {"sessionsEnded": 1}
            await backend.access("a:1", sub="ann", keys={"read": ["a:*"]})
            await backend.ask_again(key="a:1")

    with gateway(lambda *_: Answer(body={"sessionsEnded": 1})) as made:
        asyncio.run(look())
        assert [(call.path, call.json) for call in made.calls] == [
            ("/v1/revoke", {"sub": "ann"}),
            ("/v1/access", {"key": "a:1", "sub": "ann", "keys": {"read": ["a:*"]}}),
            ("/v1/access", {"ask": {"key": "a:1"}}),
        ]


def test_a_gateway_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_SECONDS", 0.05)
    given_up = threading.Event()

    def answer(*_: Any) -> Answer:
        given_up.wait()
        return Answer(lost=True)

    async def look() -> None:
        async with made.backend() as backend:
            try:
                with pytest.raises(CallError, match=r"nothing within 0\.0\d+ s"):
                    await backend.put("a:1", 1)
            finally:
                given_up.set()

    with gateway(answer) as made:
        asyncio.run(look())


def test_a_gateway_that_hangs_keeps_nothing_else_of_the_program_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def hang(*_: object) -> tuple[int, None, bytes]:
        is_over.wait()
        return 200, None, b"{}"

    monkeypatch.setattr(module.Gateway, "_exchange", hang)

    async def run() -> None:
        async with Backend("http://127.0.0.1:1", "secret") as backend:
            # More than a loop has threads.
            calls = [asyncio.create_task(backend.publish("room:1", n)) for n in range(40)]
            # Each comes to its thread within a few turns.
            for _ in range(20):
                await asyncio.sleep(0)
            try:
                async with asyncio.timeout(5):
                    assert await asyncio.to_thread(lambda: "done") == "done"
            finally:
                is_over.set()
            await asyncio.gather(*calls)

    asyncio.run(run())


def test_a_call_that_cannot_be_made_fails_and_the_end_does_not_wait_for_it() -> None:
    keys: Any = [b"a:1"]

    async def look() -> None:
        async with made.backend() as backend:
            with pytest.raises(TypeError):
                await backend.refresh(keys)

    with gateway(lambda *_: Answer(202)) as made:
        asyncio.run(asyncio.wait_for(look(), 20))


def test_a_token_that_no_header_takes_is_refused_at_once_and_not_shown() -> None:
    with pytest.raises(ValueError, match="the token has a character that no header takes") as failed:
        Backend("http://gateway:8081", "secret\n")
    assert "secret" not in str(failed.value)


def test_a_url_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'gateway:8081' is no URL"):
        Backend("gateway:8081", "secret")


def test_the_end_sends_what_was_collected_and_nothing_comes_after_it() -> None:
    async def look() -> None:
        async with made.backend() as backend:
            refreshed = backend.refresh("a:1")
        assert refreshed.done() and made.bodies == [{"keys": ["a:1"]}]
        with pytest.raises(CallError, match="closed"):
            backend.refresh("a:2")
        with pytest.raises(CallError, match="closed"):
            await backend.put("a:2", 1)
        await backend.close()

    with gateway(lambda *_: Answer(202)) as made:
        asyncio.run(look())
        assert len(made.calls) == 1


class TestBlocking:
    def test_each_call_is_made_as_the_one_that_is_awaited_and_gives_the_same(self) -> None:
        with gateway(lambda *_: Answer(body={"taken": True})) as made:
            backend = made.blocking()
            backend.refresh("a:1")
            backend.refresh({"own:1"}, ["bob", "ann"])
            assert backend.put("a:1", {"n": 1}, order=17)["taken"]
            backend.delete("a:3")
            backend.put_all([{"key": "a:2", "delete": True}])
            kept = backend.publish("room:1", None, sender="ann", message_id="mine-mine-mine-mine")
            backend.revoke(sub="ann")
            backend.access("a:1", sub="ann")
            backend.ask_again(key="a:1")
            assert kept["messageId"] == "mine-mine-mine-mine"
            assert [(call.method, call.path, call.json if call.body else None) for call in made.calls] == [
                ("POST", "/v1/refresh", {"keys": ["a:1"]}),
                ("POST", "/v1/refresh", {"keys": ["own:1"], "users": ["ann", "bob"]}),
                ("PUT", "/v1/values/a%3A1", {"n": 1}),
                ("DELETE", "/v1/values/a%3A3", None),
                ("POST", "/v1/values", {"key": "a:2", "delete": True}),
                (
                    "POST",
                    "/v1/publish",
                    {"key": "room:1", "data": None, "messageId": "mine-mine-mine-mine", "from": "ann"},
                ),
                ("POST", "/v1/revoke", {"sub": "ann"}),
                ("POST", "/v1/access", {"key": "a:1", "sub": "ann"}),
                ("POST", "/v1/access", {"ask": {"key": "a:1"}}),
            ]

    def test_many_keys_leave_in_requests_of_5000(self) -> None:
        with gateway(lambda *_: Answer(202)) as made:
            made.blocking().refresh(f"a:{number}" for number in range(7_000))
            assert [len(body["keys"]) for body in made.bodies] == [5_000, 2_000]

    def test_messages_of_a_room_come_in_order_and_those_that_are_left_are_named(self) -> None:
        def answer(call: Call, _: int) -> Answer:
            is_refused = (call.json["key"], call.json["data"]) == ("room:1", 2)
            return Answer(507, {"code": "log_full", "message": "full"}) if is_refused else Answer(body={"seq": 1})

        with gateway(answer) as made:
            messages = [{"key": key, "data": data} for data in (1, 2, 3) for key in ("room:1", "room:2")]
            with pytest.raises(CallError, match="log_full") as failed:
                made.blocking().publish_all(messages)
            left = [(message["key"], message["data"]) for message in failed.value.messages]
            assert left == [("room:1", 2), ("room:1", 3)]
            assert [body["data"] for body in made.bodies if body["key"] == "room:2"] == [1, 2, 3]

    def test_a_call_is_repeated_while_patience_lasts(self) -> None:
        with gateway(lambda _, count: Answer(lost=True) if count == 1 else Answer(503, "", retry_after="6")) as made:
            with pytest.raises(CallError) as failed:
                made.blocking().refresh("a:1")
            assert (failed.value.status, failed.value.retry_after, made.waits) == (503, 6, [0])
            with pytest.raises(CallError):
                made.blocking(patience=60).refresh("a:1")
            assert made.waits[1:] == [6] * 4

    def test_a_gateway_that_says_nothing_is_given_up_when_patience_ends(self) -> None:
        given_up = threading.Event()

        def answer(*_: Any) -> Answer:
            given_up.wait()
            return Answer(lost=True)

        with gateway(answer) as made:
            try:
                with pytest.raises(CallError, match=r"nothing within 0\.0\d+ s"):
                    made.blocking(patience=0.05).put("a:1", 1)
            finally:
                given_up.set()

    @pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
    def test_an_answer_that_comes_byte_by_byte_is_given_up_when_patience_ends(self, start: bytes) -> None:
        given_up = threading.Event()

        def drip(listening: socket.socket) -> None:
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.sendall(start)
                while not given_up.wait(0.01):
                    peer.sendall(b"a")

        with socket.create_server(("127.0.0.1", 0)) as listening:
            dripping = threading.Thread(target=drip, args=[listening])
            dripping.start()
            try:
                with pytest.raises(CallError, match=r"nothing within 0\.[12]\d* s"):
                    BlockingBackend(f"http://127.0.0.1:{listening.getsockname()[1]}", "secret", 0.2).put("a:1", 1)
            finally:
                given_up.set()
                dripping.join()

    def test_an_answer_without_end_is_not_read_to_its_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_ANSWER_BYTES_MAX", 1_000)
        with gateway(lambda *_: Answer(body={"text": "x" * 1_000})) as made:
            with pytest.raises(CallError, match="an answer of more than 1000 bytes"):
                made.blocking().put("a:1", 1)

    def test_threads_call_at_once(self) -> None:
        with gateway(lambda *_: Answer(202)) as made:
            backend = made.blocking()
            threads = [threading.Thread(target=backend.refresh, args=[f"a:{number}"]) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(body["keys"][0] for body in made.bodies) == [f"a:{number}" for number in range(8)]

    def test_a_url_that_is_none_is_refused_at_once(self) -> None:
        with pytest.raises(ValueError, match="'gateway:8081' is no URL"):
            BlockingBackend("gateway:8081", "secret")


class TestIsFromKeycast:
    """The same in packages/client/backend.test.js and packages/service/notify/signature.test.ts."""

    SECRET = "a secret of sixteen"
    OTHER = "another secret that is long"
    BODY = '{"key":"room:1","text":"grüße"}'.encode()
    T = 1_700_000_000
    V1 = "2d6c9ebe4f63044b546dd5d3f6aa069be030cedcb9aed9e9a2e62c1e9242f112"

    def test_a_call_of_now_that_one_of_the_secrets_signed_is_taken(self) -> None:
        signature = f"t={self.T},v1={self.V1}"
        assert is_from_keycast(signature, self.BODY, self.SECRET, now=lambda: self.T)
        assert is_from_keycast(signature, self.BODY, [self.OTHER, self.SECRET], now=lambda: self.T + 300)
        assert is_from_keycast(f"t={self.T},v1={'0' * 64},v1={self.V1}", self.BODY, self.SECRET, now=lambda: self.T)

    @pytest.mark.parametrize(
        ("signature", "body", "secret", "at"),
        [
            (f"t={T},v1={V1}", BODY + b" ", SECRET, T),
            (f"t={T},v1={V1}", BODY, OTHER, T),
            (f"t={T},v1={V1}", BODY, SECRET, T + 301),
            (f"t={T},v1={V1}", BODY, SECRET, T - 301),
            (f"t={T + 1},v1={V1}", BODY, SECRET, T),
            (f"t={T},v1={V1[2:]}", BODY, SECRET, T),
            (f"t=now,v1={V1}", BODY, SECRET, T),
            (f"v1={V1}", BODY, SECRET, T),
            ("", BODY, SECRET, T),
            (None, BODY, SECRET, T),
        ],
    )
    def test_anything_else_is_not(self, signature: str | None, body: bytes, secret: str, at: int) -> None:
        assert not is_from_keycast(signature, body, secret, now=lambda: at)
