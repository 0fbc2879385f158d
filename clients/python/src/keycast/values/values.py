"""The keys that somebody watches: takes what the gateway says of them, applies deltas, and doubts what does not fit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ..connection.backoff import backoff_ms
from ..errors import KeycastError, end_of
from ..keys import bad_key
from ..parts import Deps
from ..subscriber import Subscriber
from .content import Content
from .delta import DeltaError, apply_delta
from .entry import NOTHING, Entry, Stale, ValueState
from .handle import Value
from .version import version_of


class Values:
    def __init__(self, deps: Deps, keep_forbidden: bool) -> None:
        self._environment = deps.environment
        self._link = deps.link
        self._keep_forbidden = keep_forbidden
        self._calls = deps.calls
        self._entries: dict[str, Entry] = {}
        self._subscriber = Subscriber(deps, self._name, self._refuse, on_forgotten=self._forget)
        #: Once nothing is asked of the gateway any more.
        self._closed: KeycastError | None = None

    def value(self, key: str) -> Value:
        entry = self._entries.get(key)
        is_known = entry is not None
        if entry is None:
            entry = Entry(key, self._environment, self._link)
            self._entries[key] = entry
        # A key that nobody wanted for a moment may have missed a delta meanwhile.
        is_in_doubt = entry.handles == 0 and not entry.held
        entry.handles += 1
        if is_in_doubt or not is_known or not self._subscriber.is_subscribed(key):
            self._ask(entry)
        else:
            self._subscriber.keep(key)
        shared = entry

        def on_close() -> None:
            shared.handles -= 1
            if shared.handles == 0:
                self._subscriber.drop(key)

        return Value(shared, self._ask, on_close)

    def peek(self, key: str) -> ValueState:
        entry = self._entries.get(key)
        return entry.state if entry else NOTHING

    def get(self, key: str) -> asyncio.Future[Any]:
        error = self._closed or bad_key(key)
        if error:
            return self._calls.refused(error)
        #: What the gateway need not send.
        held: Content | None = None

        def make() -> dict[str, Any]:
            nonlocal held
            entry = self._entries.get(key)
            held = entry.shown if entry else None
            request = {"type": "get", "key": key}
            return {**request, "version": held.version} if held else request

        def read(message: dict[str, Any], body: bytes | None) -> Any:
            content = held if body is None else Content(key, message["version"], message["contentType"], body)
            return content.value if content else None

        return self._calls.ask(key, make, read)

    def is_subscribed(self, key: str) -> bool:
        return self._subscriber.is_subscribed(key)

    def fail_as_room(self, key: str) -> bool:
        """The key is that of a room. Says whether it was wanted as a value."""
        entry = self._entries.get(key)
        if not entry or entry.ended:
            return False
        self._fail(entry, KeycastError("not_a_value", "this key is a room", key))
        return True

    def opened(self, limits: dict[str, int]) -> None:
        self._publish_all()
        wanted = [key for key, entry in self._entries.items() if entry.handles and not entry.ended]
        self._subscriber.opened(limits, wanted)

    def lost(self) -> None:
        for entry in self._entries.values():
            entry.awaits_whole = False
        self._subscriber.lost()
        self._publish_all()

    def received(self, message: dict[str, Any], body: bytes | None) -> bool:
        """Says whether a message was about a value."""
        for begun in message.get("keys", []):
            # Only what is said of a room has an epoch.
            if "epoch" in begun:
                self.fail_as_room(begun["key"])
        if self._subscriber.answered(message):
            return True
        entry = self._entries.get(message.get("key", ""))
        if not entry or not self._subscriber.is_subscribed(entry.key):
            return False
        entry.answered = self._link.session
        kind = message["type"]
        if kind == "error":
            self._fail(entry, KeycastError.of(message, entry.key), is_said=True)
        elif kind == "stale":
            asked_at = (self._environment.date() - message["sinceMs"]) / 1_000
            entry.stale = Stale(message["code"], asked_at)
        # A gateway may be newer: what it says of another kind says nothing of the value.
        elif kind in ("value", "delta", "current"):
            entry.stale = None
            entry.error = None
            entry.refusals = 0
            entry.order = message.get("order")
            if kind == "value" and body is not None:
                entry.begin(Content(entry.key, message["version"], message["contentType"], body))
            elif kind == "delta" and body is not None:
                self._change(entry, message, body)
            elif kind == "current" and (not entry.held or entry.held.version != message["version"]):
                self._doubt(entry)
        entry.publish()
        return True

    def end(self, error: KeycastError) -> None:
        """Nothing is asked of the gateway any more."""
        self._closed = error
        for entry in list(self._entries.values()):
            entry.alarm.clear()
            self._ask(entry)

    def revive(self) -> None:
        """A person insists: what was refused or has ended is asked for again."""
        self._closed = None
        for entry in list(self._entries.values()):
            self._retry(entry)

    def _name(self, key: str, _: int) -> Any:
        entry = self._entries.get(key)
        named: dict[str, Any] = {"key": key}
        if entry and entry.held:
            named["version"] = entry.held.version
        # Also without that version's bytes, which only deltas need: nothing older may come after what was shown.
        if entry and entry.order is not None:
            named["order"] = entry.order
        return named if len(named) > 1 else key

    def _forget(self, key: str) -> None:
        entry = self._entries.get(key)
        if entry and entry.handles == 0:
            entry.alarm.clear()
            del self._entries[key]

    def _refuse(self, key: str, code: str, message: str) -> None:
        entry = self._entries.get(key)
        if entry:
            self._fail(entry, KeycastError(code, message, key))

    def _fail(self, entry: Entry, error: KeycastError, *, is_said: bool = False) -> None:
        entry.error = error
        end = end_of(error)
        # There is no value any more. After any other error what is held is the latest there is.
        if error.code == "not_found" or (end == "forbidden" and not self._keep_forbidden):
            entry.begin(None)
            entry.stale = None
        if end == "forbidden":
            wait_ms = backoff_ms(self._environment.random(), entry.refusals)
            entry.refusals += 1
            entry.alarm.set(lambda: self._retry(entry), wait_ms)
        # Nobody may want it any more: then the alarm ends, too.
        if end:
            self._subscriber.ended(entry.key, is_said=is_said)
        entry.publish()

    def _ask(self, entry: Entry) -> None:
        """Asks how a key stands."""
        error = self._closed or bad_key(entry.key)
        if error or entry.ended:
            entry.error = error
        if not error and entry.handles:
            self._subscriber.want(entry.key)
        entry.publish()

    def _retry(self, entry: Entry) -> None:
        """Asks again for a key whose subscription has ended."""
        if end_of(entry.error):
            self._ask(entry)

    def _publish_all(self) -> None:
        for entry in list(self._entries.values()):
            entry.publish()

    def _doubt(self, entry: Entry) -> None:
        """Asks for the whole value: the gateway thinks this client holds something else than it does."""
        if entry.awaits_whole:
            return
        entry.held = None
        # It may have been let go of, and be on its way out.
        if entry.handles == 0:
            return
        entry.awaits_whole = True
        self._subscriber.want(entry.key)

    def _change(self, entry: Entry, message: dict[str, Any], delta: bytes) -> None:
        held, version = entry.held, message["version"]
        if entry.awaits_whole or (held and held.version == version):
            return
        if not held or held.version != message["from"]:
            return self._doubt(entry)
        try:
            body = apply_delta(held.body, delta)
        except DeltaError:
            return self._doubt(entry)
        if version_of(body, message["contentType"]) != version:
            return self._doubt(entry)
        entry.held = entry.shown = Content(entry.key, version, message["contentType"], body)
