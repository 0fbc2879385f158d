"""A handle, which an application holds of a room: listeners and an async iterator in one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ..environment import Environment
from ..handle import Handle
from ..listeners import Listeners
from .messages import Gap, History, Joined, MembersState, Message, PendingMessage, Position, Published, RoomState
from .room import Reader, RoomEntry

BUFFER_MESSAGES = 1_000
DEADLINE_SECONDS = 30.0


class Deeds(Protocol):
    """What a handle has done by the rooms of its client."""

    def publish(
        self, key: str, data: Any, message_id: str | None, deadline: float
    ) -> asyncio.Future[Published]: ...

    def history(
        self, key: str, before: Position | None, after: Position | None, limit: int | None
    ) -> asyncio.Future[History]: ...

    def retry(self, entry: RoomEntry) -> None: ...

    def closed(self, entry: RoomEntry, reader: Reader) -> None: ...


class Room(Handle):
    """A room that is followed; its subscription is shared with all other handles of the room.

    `async for` gives each message once and in order, also those that came before the loop began and between two loops.
    Where some cannot be given, and where more than `buffer_messages` wait, it gives a Gap in their place. It ends when
    the handle is closed, and raises the error that ends the subscription. After `forbidden` it goes on.
    """

    def __init__(
        self,
        environment: Environment,
        entry: RoomEntry,
        reader: Reader,
        follow: bool,
        buffer_messages: int,
        deeds: Deeds,
    ) -> None:
        super().__init__(entry)
        self._entry = entry
        self._reader = reader
        self._follow = follow
        self._buffer_messages = buffer_messages
        self._deeds = deeds
        self._messages: Listeners[Message] = Listeners(environment, lambda: None)
        self._gaps: Listeners[Gap] = Listeners(environment, lambda: None)
        self._queue: deque[Message | Gap] = deque()
        #: A program that has a listener for messages and no loop must not pay for a queue.
        self._is_buffering = True
        self._has_loop = False
        self._woken = asyncio.Event()
        self._listen(entry.listeners, lambda _: self._woken.set(), heard=True)
        reader.take = self._take

    @property
    def key(self) -> str:
        return self._entry.key

    @property
    def state(self) -> RoomState:
        return self._entry.state

    @property
    def pending(self) -> tuple[PendingMessage, ...]:
        """The messages published here whose outcome is not known yet."""
        return self._entry.state.pending

    @property
    def position(self) -> Position | None:
        """The place to go on from: where the stream began, then that of the last message this handle was given.

        None before it is known. A loop may be behind: the items it gives have their own.
        """
        return self._reader.position

    @property
    def members(self) -> MembersState:
        """Who is there, for a handle that was opened with `presence`."""
        return self._entry.members.state

    def on_message(self, listener: Callable[[Message], None]) -> Callable[[], None]:
        """Calls a listener with each message. Gives what takes it off."""
        if not self._has_loop:
            self._is_buffering = False
            self._queue.clear()
        return self._listen(self._messages, listener)

    def on_gap(self, listener: Callable[[Gap], None]) -> Callable[[], None]:
        """Calls a listener where messages are missing. Gives what takes it off."""
        return self._listen(self._gaps, listener)

    def on_change(self, listener: Callable[[RoomState], None]) -> Callable[[], None]:
        """Calls a listener at every change of `state`, and once soon after this. Gives what takes it off."""
        return self._listen(self._entry.listeners, listener)

    def on_members(self, listener: Callable[[MembersState], None]) -> Callable[[], None]:
        """Calls a listener at every change of `members`, and once soon if they are known. Gives what takes it off."""
        return self._listen(self._entry.members.listeners, listener)

    def publish(
        self, data: Any, *, message_id: str | None = None, deadline: float = DEADLINE_SECONDS
    ) -> asyncio.Future[Published]:
        """Publishes anything that `json.dumps` takes, and ends once the message is kept.

        It is sent again over losses, under the same id, until its outcome is known or the deadline in seconds has
        passed. Raises KeycastError, with `message_id` and `kept`; TypeError and ValueError where the data is no JSON.
        """
        return self._deeds.publish(self.key, data, message_id, deadline)

    def history(
        self, *, before: Position | None = None, after: Position | None = None, limit: int | None = None
    ) -> asyncio.Future[History]:
        """The newest messages before a position, the oldest after one, or the newest of all: 50 unless said."""
        return self._deeds.history(self.key, before, after, limit)

    def join(self, name: str, claim: str | None = None) -> asyncio.Future[Joined]:
        """Enters this room under a name, in each later session too, until `leave()` or the last handle is closed.

        Without a token the `claim` says who this is: 22 characters of `A-Z a-z 0-9 _ -`, made up where none is given.
        """
        return self._entry.membership.join(name, claim)

    def leave(self) -> asyncio.Future[None]:
        return self._entry.membership.leave()

    def retry(self) -> None:
        """Asks the gateway now for the room, and for the membership, also after an error that ended them."""
        self._deeds.retry(self._entry)

    def __aiter__(self) -> Room:
        # No message would ever come.
        if not self._follow:
            raise RuntimeError("this handle follows nothing: open one without follow=False")
        self._has_loop = True
        self._is_buffering = True
        return self

    async def __anext__(self) -> Message | Gap:
        while not self._closed:
            if self._queue:
                return self._queue.popleft()
            if self._has_ended():
                break
            self._woken.clear()
            await self._woken.wait()
        # Others who wait for this handle are to end, too.
        self._woken.set()
        raise StopAsyncIteration

    def _take(self, item: Message | Gap) -> None:
        if self._is_buffering:
            if len(self._queue) >= self._buffer_messages:
                # Not a part as the whole: what the loop missed is named by a gap.
                first = self._queue[0]
                oldest = first.oldest if isinstance(first, Gap) else first.position
                self._queue.clear()
                self._queue.append(Gap("slow", item.position, oldest))
            else:
                self._queue.append(item)
            self._woken.set()
        if isinstance(item, Gap):
            self._gaps.tell(item)
        else:
            self._messages.tell(item)

    def _on_close(self) -> None:
        self._queue.clear()
        self._woken.set()
        self._deeds.closed(self._entry, self._reader)
