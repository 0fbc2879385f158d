"""One key as this client holds it, shared by all handles of the key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..environment import Alarm, Environment, Link
from ..errors import Health, KeycastError, end_of
from ..listeners import Listeners
from .content import Content


@dataclass(frozen=True)
class Stale:
    """The backend cannot be asked just now."""

    code: str
    #: When it was last asked with success, in seconds since 1970.
    asked_at: float


@dataclass(frozen=True)
class ValueState:
    """How a key stands. The object stays the same until something of it changes."""

    version: str | None = None
    content_type: str | None = None
    #: Of the value as the backend gave it.
    size_bytes: int | None = None
    stale: Stale | None = None
    #: How `value` stands.
    health: Health = "loading"
    #: Where it is `subscribed` it heals by itself; else the subscription has ended.
    error: KeycastError | None = None
    #: When `version` became what it is, in seconds since 1970.
    changed_at: float | None = None
    _content: Content | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> Any:
        """JSON parsed, text as a string, anything else as bytes; None before the first and after `not_found`.

        It is parsed when somebody looks, and shared by all handles: treat it as read-only. Raises KeycastError
        (`invalid_content`) where Python cannot read it, as JSON that is nested a thousand levels deep.
        """
        return self._content.value if self._content else None


#: A key of which nothing is known.
NOTHING = ValueState()


class Entry:
    def __init__(self, key: str, environment: Environment, link: Link) -> None:
        self.key = key
        self.link = link
        self._date = environment.date
        self.state = NOTHING
        #: The latest state that changed more than the health: loops are given it.
        self.news = NOTHING
        self.listeners: Listeners[ValueState] = Listeners(
            environment, lambda: None if self.state is NOTHING else self.state
        )
        #: How many handles share it.
        self.handles = 0
        #: The session in which the gateway said how the key stands.
        self.answered: object = None
        #: For the next try after a refusal; and how often it was refused, one time after the other.
        self.alarm = Alarm(environment)
        self.refusals = 0
        #: The version whose bytes are here. The next delta is applied to it.
        self.held: Content | None = None
        #: The number of the value that came last: with it no gateway sends an older one.
        self.order: int | None = None
        #: The version to show. It stays while `held` is in doubt.
        self.shown: Content | None = None
        #: Whether the whole value was asked for anew: deltas are of no use until it comes.
        self.awaits_whole = False
        self.stale: Stale | None = None
        self.error: KeycastError | None = None

    @property
    def ended(self) -> bool:
        """Whether it is not asked for again by itself."""
        return self.health == "ended"

    @property
    def health(self) -> Health:
        error = self.error
        end = end_of(error)
        if end:
            return end
        if self.link.is_offline:
            return "offline"
        if self.answered is not self.link.session:
            return "loading"
        # That there is no value is the truth about a key, too.
        if error and error.code == "not_found":
            return "live"
        if not self.shown:
            return "loading"
        return "stale" if error or self.stale else "live"

    def begin(self, content: Content | None) -> None:
        """Takes the whole of a version, or nothing where there is none any more."""
        self.held = content
        self.shown = content
        self.awaits_whole = False

    def publish(self) -> None:
        """Makes a new state where anything differs, and tells it to everybody."""
        shown, before = self.shown, self.state
        version = shown.version if shown else None
        is_new = version != before.version
        is_news = is_new or self.stale is not before.stale or self.error is not before.error
        if not is_news and self.health == before.health:
            return
        self.state = ValueState(
            version=version,
            content_type=shown.content_type if shown else None,
            size_bytes=len(shown.body) if shown else None,
            stale=self.stale,
            health=self.health,
            error=self.error,
            changed_at=self._date() / 1_000 if is_new else before.changed_at,
            _content=shown,
        )
        if is_news:
            self.news = self.state
        self.listeners.tell(self.state)
