"""Reading a stream for ever: list what is there, follow what comes, notice every gap and list again.

Rules (docs/rules.md, listing-ends-where-the-stream-ends;
docs/rules.md, gaps-show-in-the-consumer-sequence;
docs/rules.md, killed-server-brings-back), and where they are kept:

- A listing is complete when it has passed everything that the stream held at one moment after it had passed S
  (the stream's last sequence when it began): then, and not before, no subject is missing. A message that is
  written again while the listing runs moves behind those that are still to come, also behind S, and until its
  new version is read its subject looks deleted. So a listing that has passed S asks where the stream ends. If
  that is no further than it had got when it asked, it is complete; else it reads to there, and asks again.
  One that writers outrun for ever ends after `MOST_ROUNDS` (`_confirm`).
- The server's word that nothing is pending is believed in two cases only: when a consumer has just been
  made, and where a single subject is listed. Else it may be wrong: what is written again is taken off at
  once, and its new version is counted later (nats-server 2.15).
- Where the last message has expired, or is a foreign one, a heartbeat says how far the consumer has got. The
  consumer that lists has one every 0.1 s, and never follows. If it says the same for two seconds and has not
  got to where the stream ended, its server ends before that, and all is listed again.
- Several subjects are listed by a consumer of the whole stream, and picked here: with several filters the
  server looks through all subjects of a block for each message once much of it has been written again
  (nats-server 2.15: 31,000 messages took 57 s, like this 1.4 s). Following has no such cost: what comes next
  is at the stream's end.
- Contiguity is the consumer sequence; a hole in it, or a heartbeat that names another one, means messages
  were lost (`feed`).
- A consumer says nothing of the stream that it was made on. So the stream is looked at before and after: made
  again between the two, it would be read from a position of the old one on. A listing looks at its end, which
  is after; only one that may end by the server's count looks at once.
- Position = the highest of S, the last message, and a heartbeat's last stream sequence, which passes expired
  and foreign messages.
- What a killed server brought back is passed over (`census`). While listing CLUSTER, a message up to the
  position P of its newest census that is not in the census, and has no TTL, is not delivered. It was deleted
  at P or before: a listing or a stream's reader had passed its sequence, and it was not there, or had been
  replaced. It cannot be there again by itself, since a sequence is given once. What was deleted behind P is
  not known to the census, but still has its marker, as long as the census is younger than a marker's life:
  the one who takes it sees to that (`workloads`). What has a TTL (markers, commit records, tombstones on
  their way out) the server lets expire, and does so again if it came back; a marker or a tombstone says
  until then what was true before. What is followed lies behind P, or is looked at alike: the server may be
  killed between the two. One of several servers may be behind P itself, and still have the version before
  the one that lives: a listing that passed over anything is not complete before it has got to P (`_reached`).
- When a feed is full, another one goes on from the next sequence. Its consumer is another, too, so the stream
  is looked at again.
- List again: on a gap, on a consumer that is gone (also because the stream was deleted and made again, or the
  server lost it), on a stream sequence that went backwards, after half of a marker's life without contact (a
  marker may have expired unseen), and when the reader asks for it.

A reader is told of silence after 2 s; while it lasts, the server is asked whether the consumer is still
there. If nobody answers for the consumer, but somebody for the stream, the consumer's server has gone from a
cluster that lives: another consumer is made.
"""

import asyncio
import logging
import random
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn, Protocol

import anyio
import msgspec

from podyard.bus import census
from podyard.bus._api import Api
from podyard.bus._link import BusState, Link
from podyard.bus.dead_letters import DeadLetters
from podyard.bus.delivery import Delivery
from podyard.bus.errors import BusError, NotFound
from podyard.bus.feed import Feed
from podyard.bus.watch_state import FOLLOW, LIST, OVER, State, step
from podyard.proto import headers, streams, subjects
from podyard.proto.codec import MessageError

log: Final = logging.getLogger("podyard.bus")

STALE_AFTER_S: Final = 2.0
"""Without message or heartbeat for so long, a reader is told that its view may be stale."""

PROBE_TIMEOUT_S: Final = 2.0
RETRY_MIN_S: Final = 0.05
RETRY_MAX_S: Final = 2.0
LISTING_HEARTBEAT_S: Final = 0.1
"""How often a consumer that only lists says that it has nothing: the shortest that the server takes. A
listing whose last messages have expired ends with the first one."""

MOST_ROUNDS: Final = 16
"""How often a listing that has passed S asks where the stream ends, and reads to there; each round has no
more to read than came during the one before."""

CALM_S: Final = 5.0
"""A reading that held so long is repeated at once; others after a pause that doubles, so that trouble does
not become load."""


EVERYTHING: Final = (">",)


class WatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is read: `list_subjects` once, then `follow_subjects`."""

    stream: str
    list_subjects: tuple[str, ...]
    follow_subjects: tuple[str, ...]
    heartbeat_s: float = 0.5
    """How often the server says that it has nothing."""


class WatchSink(Protocol):
    """Gets what a watch reads. All methods are synchronous and called on the event loop; an exception ends
    the watch, except a `MessageError` from `deliver`, which makes a dead letter."""

    def listing(self, target: int, reason: str) -> None:
        """A listing begins (again), because of `reason`: what is not delivered until `synced` is gone.
        Complete at position `target`."""
        ...

    def deliver(self, delivery: Delivery) -> None:
        """A message, in stream order within listing and following. The first ones followed may repeat the
        last of the listing."""
        ...

    def synced(self, position: int) -> None:
        """The listing is complete up to `position`."""
        ...

    def advanced(self, position: int) -> None:
        """Everything up to `position` was passed, and there was no other message for this reader. After a
        listing this may be told of a position that it was to reach: then nothing before it is still to come
        from a server that lags behind the stream's leader."""
        ...

    def contact(self, fresh: bool) -> None:
        """False: nothing was heard for 2 s, the view may be stale. True: heard again."""
        ...


class Watch:
    """One reader of one stream; `run()` it in a task group. Owned by that task and the connection's callbacks
    of one event loop."""

    def __init__(
        self,
        link: Link,
        api: Api,
        dead: DeadLetters,
        spec: WatchSpec,
        sink: WatchSink,
        on_came_back: Callable[[Delivery], None] = lambda delivery: None,
        on_read: Callable[[], None] | None = None,
    ) -> None:
        """
        :param on_came_back: told of each message that a listing passes over
        :param on_read: told when the sink has all deliveries that were read at one go, before anybody else
            runs; synchronous, and an exception ends the watch
        """
        self.spec = spec
        self.position = 0
        """Everything up to this stream sequence was seen. 0 before the first listing is complete."""

        self.listings = 0
        """How often a listing was begun."""

        self.held = 0
        """How many messages the stream held when the last listing began."""

        self.replicas = 1
        """On how many servers the stream is."""
        self.came_back = 0
        """How many messages were passed over since: deleted ones, which a killed server brought back."""

        self._link = link
        self._blind_limit_s = link.settings.marker_ttl_s / 2
        self._api = api
        self._dead = dead
        self._sink = sink
        self._is_listed = picker(spec.list_subjects)
        self._created = ""
        self._fresh = True
        self._heard_at = time.monotonic()
        self._problem = ""
        self._failure: Exception | None = None
        self._wake = anyio.Event()
        self._connects = 0
        self._probe_now = False
        self._silence: asyncio.TimerHandle | None = None
        self._listed_to = 0
        self._passed = 0
        """The highest sequence of this reading that its consumers have behind them."""
        self._target = 0
        """S."""
        self._goal = 0
        """What a listing reads to before it asks where the stream ends: at first S."""
        self._is_at_goal = False
        self._beat_at = 0
        """The highest sequence that a heartbeat of this reading said to be passed."""
        self._on_came_back = on_came_back
        self._after_read = None if on_read is None else partial(self._guarded, on_read)
        self._census: census.Living | None = None
        self._first_back = ""
        self._state = State.IDLE
        """Written by `_go` alone."""
        self._trusts_count = False
        """The listing is one of a single subject."""
        self._is_counted_out = False
        """Nothing is pending behind the last message, says the server, and may be trusted."""
        self._behind = (0, 0.0)
        """The last sequence, below the goal, that heartbeats name, and since when."""
        self._rounds = 0

    def relist(self, reason: str) -> None:
        """List again soon; for a reader that found its view wrong."""
        self._break(reason)

    async def run(self) -> NoReturn:
        """Read for ever.

        :raises Exception: what the sink raised
        """
        reason, delay_s = "start", 0.0
        end = self._link.on_state(self._on_state)
        self._heard_at = time.monotonic()
        self._watch_silence()
        try:
            while True:
                began_at = time.monotonic()
                try:
                    reason = await self._read(reason)
                except BusError as error:
                    log.warning("watch of %s: %s; trying again", self.spec.stream, error)
                    reason = _also(reason, str(error))
                self._go(State.IDLE)
                if time.monotonic() - began_at > CALM_S:
                    delay_s = 0.0
                await self._pause(delay_s)
                delay_s = min(RETRY_MAX_S, max(RETRY_MIN_S, delay_s * 2))
        finally:
            end()
            if self._silence is not None:
                self._silence.cancel()

    async def _read(self, reason: str) -> str:
        """List and follow until that breaks; returns why."""
        self._problem, self._wake = "", anyio.Event()
        self._go(State.OPENING)
        await self._link.ready(STALE_AFTER_S)
        info = await self._api.stream_info(self.spec.stream, PROBE_TIMEOUT_S)
        reason = self._explain(reason, info.created, info.state.last_seq)
        self._created = info.created
        self._target = info.state.last_seq
        self._goal, self._is_at_goal, self._is_counted_out = self._target, False, False
        self._listed_to = self._passed = self._beat_at = self._rounds = 0
        self.held, self.came_back = info.state.messages, 0
        self.replicas = int(info.config.get("num_replicas", 1))
        self._census = await self._newest_census()
        self.listings += 1
        self._heard_at = time.monotonic()
        log.info("watch of %s lists up to %d: %s", self.spec.stream, self._target, reason)
        self._sink.listing(self._target, reason)
        listed = self.spec.list_subjects if len(self.spec.list_subjects) == 1 else EVERYTHING
        self._trusts_count = not any(wildcard in listed[0] for wildcard in "*>")
        self._behind = (0, 0.0)
        problem = await self._consume_all(listed, 0)
        if self._state is not State.LISTED:
            return problem or self._problem
        self._go(State.JOINING)
        return await self._consume_all(self.spec.follow_subjects, (self._listed_to or self._target) + 1)

    async def _newest_census(self) -> census.Living | None:
        """What lived in the stream, if anybody has said so. One that cannot be read says nothing. One of a
        stream that was made again since `_read` looked at it is never used: `_consume` looks again."""
        if self.spec.stream != streams.CLUSTER.name:
            return None
        found = await self._api.last_message(self.spec.stream, subjects.CENSUS, PROBE_TIMEOUT_S)
        if found is None or found.deleted:
            return None
        try:
            living = census.decode(found.payload)
            if living.position >= found.sequence:
                raise MessageError("Census", f"position {living.position} is not before its own {found.sequence}")
        except MessageError as error:
            self._dead.put(self._link.settings.service_name, found, str(error))
            return None
        return living

    def _explain(self, reason: str, created: str, last_sequence: int) -> str:
        if self._created and created != self._created:
            return f"the stream was made again ({reason})"
        if last_sequence < self.position:
            return (
                f"the stream lost messages: it ends at {last_sequence}, this reader was at {self.position} ({reason})"
            )
        return reason

    async def _consume_all(self, subjects: tuple[str, ...], start: int) -> str:
        """Read by one consumer after the other until one breaks (returns why) or the listing is complete
        (returns "")."""
        while True:
            reason = await self._consume(subjects, start)
            if reason or self._state not in (State.LISTING, State.FOLLOWING):
                return reason
            start = self._passed + 1
            self._go(State.OPENING if self._state is State.LISTING else State.JOINING)

    async def _consume(self, subjects: tuple[str, ...], start: int) -> str:
        """Read by one consumer until it breaks (returns why), or is full, or the listing is complete (both
        return "")."""
        lists = self._state is State.OPENING
        heartbeat_s = min(LISTING_HEARTBEAT_S, self.spec.heartbeat_s) if lists else self.spec.heartbeat_s
        feed = Feed(self._link, self.spec.stream, heartbeat_s, self)
        try:
            pending = await feed.open(self._api, subjects, start)
            if not lists or pending == 0 or self._trusts_count:
                info = await self._api.stream_info(self.spec.stream, PROBE_TIMEOUT_S)
                if info.created != self._created:
                    return "the stream was made again while a consumer was made"
            self._consumer_is_made(pending)
            while True:
                self._raise_failure()
                if self._state is State.BROKEN:
                    return self._problem
                if self._state is State.LISTED or feed.full:
                    return ""
                if self._state is State.LISTING and self._is_at_goal:
                    await self._confirm()
                else:
                    await self._wait(feed)
        finally:
            with anyio.CancelScope(shield=True):
                await feed.close()

    def _consumer_is_made(self, pending: int) -> None:
        """And if nothing else looks (`_confirm`): on the stream whose last sequence is the target."""
        if self._state is State.JOINING:
            self._go(State.FOLLOWING)
        elif self._state is State.OPENING:
            self._go(State.LISTING)
            if self._is_counted_out or (pending == 0 and self._reached(self._got_to)):
                self._complete()

    async def _confirm(self) -> None:
        """Ask where the stream ends: complete if there is nothing that this listing had not passed before."""
        self._is_at_goal = False
        passed = self._got_to
        info = await self._api.stream_info(self.spec.stream, PROBE_TIMEOUT_S)
        if self._state is not State.LISTING:
            return
        if info.created != self._created:
            self._break("the stream was made again while it was listed")
            return
        self._rounds += 1
        if info.state.last_seq <= passed or self._rounds > MOST_ROUNDS:
            self._complete()
        else:
            self._goal = info.state.last_seq
            self._look_at_goal()

    def _go(self, state: State) -> None:
        self._state = step(self._state, state)

    async def _wait(self, feed: Feed) -> None:
        """Until something happened; after a silence ask whether the consumer is still there."""
        self._wake = anyio.Event() if self._wake.is_set() else self._wake
        with anyio.move_on_after(self.spec.heartbeat_s):
            await self._wake.wait()
        if self._probe_now or time.monotonic() - self._heard_at > max(1.0, 3 * self.spec.heartbeat_s):
            await self._probe(feed)

    def _watch_silence(self) -> None:
        """Tell the reader in time, whatever this watch is waiting for; calls itself again."""
        left_s = self._heard_at + STALE_AFTER_S - time.monotonic()
        if left_s <= 0:
            self._contact(False)
        delay_s = left_s if left_s > 0 else self.spec.heartbeat_s
        self._silence = asyncio.get_running_loop().call_later(delay_s, self._watch_silence)

    async def _probe(self, feed: Feed) -> None:
        """Ask whether the consumer is still there; no answer says nothing."""
        if not self._link.state.connected:
            return
        self._probe_now = False
        try:
            await self._api.consumer_info(self.spec.stream, feed.consumer, PROBE_TIMEOUT_S)
        except NotFound as error:
            self._break(f"the consumer is gone ({error})")
        except BusError as error:
            log.debug("watch of %s: no word about its consumer: %s", self.spec.stream, error)
            await self._replace_lost(error)

    async def _replace_lost(self, error: BusError) -> None:
        """A consumer lives on one server. If that one is gone, or cut off, the stream may live on with the
        others: read from there."""
        if time.monotonic() - self._heard_at < STALE_AFTER_S:
            return
        try:
            await self._api.stream_info(self.spec.stream, PROBE_TIMEOUT_S)
        except BusError as no_stream:
            log.debug("watch of %s: no word about the stream either: %s", self.spec.stream, no_stream)
        else:
            self._break(f"the stream answers, the consumer does not ({error})")

    async def _pause(self, delay_s: float) -> None:
        await anyio.sleep(delay_s * random.uniform(0.75, 1.25))

    # --- called by the feed and the link, synchronously: they set what `_wait` looks at

    def on_message(self, delivery: Delivery, pending: int) -> None:
        """The feed read a message and `pending` more are there."""
        if self._ignoring():
            return
        self._heard()
        sequence = delivery.sequence
        if sequence > self._passed:
            self._passed = sequence
        if self._state in FOLLOW:
            if sequence > self.position:
                self.position = sequence
            self._follow(delivery)
            return
        if self._is_listed(delivery.subject):
            self._listed_to = delivery.sequence
            if self._is_back(delivery):
                self._pass_over(delivery)
            else:
                self._deliver(delivery)
        if self._failure is not None:
            return
        self._is_counted_out = pending == 0 and self._trusts_count and self._reached(delivery.sequence)
        if self._is_counted_out and self._state is State.LISTING:
            self._complete()
        else:
            self._look_at_goal()

    def _follow(self, delivery: Delivery) -> None:
        if self._census is not None:
            if self._is_back(delivery):
                self._pass_over(delivery)
                return
            if delivery.sequence > self._census.position:
                self._census = None
        self._deliver(delivery)

    def _is_back(self, delivery: Delivery) -> bool:
        """Whether it had been deleted, and a killed server brought it back."""
        found = self._census
        return found is not None and found.came_back(delivery.sequence) and headers.TTL not in delivery.headers

    def _pass_over(self, delivery: Delivery) -> None:
        self.came_back += 1
        if self.came_back == 1:
            self._first_back = f"{delivery.subject} @{delivery.sequence}"
        self._guarded(self._on_came_back, delivery)

    def _deliver(self, delivery: Delivery) -> None:
        if self._after_read is not None:
            self._link.after_read(self._after_read)
        try:
            self._sink.deliver(delivery)
        except MessageError as error:
            self._dead.put(self._link.settings.service_name, delivery, str(error))
        except Exception as error:  # boundary: handed to the task that runs the watch
            self._fail(error)

    def on_heartbeat(self, last_stream: int) -> None:
        """The feed has nothing more, and has passed the stream's sequence `last_stream`."""
        if self._ignoring():
            return
        self._heard()
        self._beat_at = max(self._beat_at, last_stream)
        if self._state is State.FOLLOWING:
            self._advance()
        elif self._state in LIST and last_stream < self._goal:
            self._lags(last_stream)
        elif self._state in LIST:
            self._look_at_goal()

    def _advance(self) -> None:
        """Tell the reader that nothing was there for it up to the last heartbeat."""
        if self._beat_at > self._passed:
            self._passed = self._beat_at
            self.position = max(self.position, self._passed)
            self._guarded(self._sink.advanced, self._passed)

    def on_stalled(self) -> None:
        """The feed waits for this side."""
        self._heard()

    def on_full(self) -> None:
        """All that the feed will bring has come."""
        if not self._ignoring():
            self._heard()
            self._wake.set()

    def on_broken(self, reason: str) -> None:
        """The feed lost messages."""
        self._break(reason)

    def _ignoring(self) -> bool:
        """Whether what comes is of no use: broken, or the listing is complete and another consumer
        follows."""
        return self._failure is not None or self._state in OVER

    @property
    def _got_to(self) -> int:
        """The highest sequence that is passed, as messages and heartbeats of this reading say."""
        return max(self._passed, self._beat_at)

    def _look_at_goal(self) -> None:
        """Whether the listing has got to its goal: then its task asks where the stream ends."""
        if self._got_to >= self._goal and self._reached(self._got_to) and not self._is_at_goal:
            self._is_at_goal = True
            self._wake.set()

    def _lags(self, last_stream: int) -> None:
        """The consumer has nothing behind `last_stream`: its server is slow, or ends before the goal."""
        now = time.monotonic()
        if self._behind[0] != last_stream or not self._behind[1]:
            self._behind = (last_stream, now)
        elif now - self._behind[1] > STALE_AFTER_S:
            self._break(f"the consumer's server ends at {last_stream}, the stream did at {self._goal}")

    def _reached(self, passed: int) -> bool:
        """Whether what lives in the place of what was passed over has come from a server that has got to
        `passed`."""
        return self._census is None or not self.came_back or passed >= self._census.position

    def _complete(self) -> None:
        """Nothing is missing."""
        self._go(State.LISTED)
        if self.came_back:
            log.warning(
                "watch of %s: %d messages that were deleted came back with the server and are passed over, first %s",
                self.spec.stream,
                self.came_back,
                self._first_back,
            )
        self.position = max(self._target, self._listed_to)
        self._guarded(self._sink.synced, self.position)
        self._advance()
        self._wake.set()

    def _break(self, reason: str) -> None:
        if self._state not in (State.IDLE, State.BROKEN):
            self._go(State.BROKEN)
            self._problem = reason
            self._wake.set()

    def _heard(self) -> None:
        now = time.monotonic()
        if now - self._heard_at > self._blind_limit_s:
            self._break(f"no contact for {now - self._heard_at:.0f} s: deletion markers may have expired unseen")
        self._heard_at = now
        if not self._fresh:
            self._contact(True)

    def _contact(self, fresh: bool) -> None:
        if fresh != self._fresh:
            self._fresh = fresh
            self._guarded(self._sink.contact, fresh)

    def _on_state(self, state: BusState) -> None:
        if state.connected and state.connects != self._connects:
            self._connects = state.connects
            self._probe_now = True
            self._wake.set()

    def _guarded(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception as error:  # boundary: handed to the task that runs the watch
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self._wake.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure


def picker(subjects: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a subject is one of `subjects`, wildcards understood; cheap for those that end in `.>`, the
    usual ones."""
    exact = {subject for subject in subjects if "*" not in subject and ">" not in subject}
    below = tuple(subject[:-1] for subject in subjects if subject.endswith(".>") and "*" not in subject)
    others = [subject for subject in subjects if subject not in exact and subject[:-1] not in below]
    pattern = re.compile("|".join(map(_as_pattern, others))) if others else None

    def is_picked(subject: str) -> bool:
        if subject.startswith(below) or subject in exact:
            return True
        return pattern is not None and pattern.fullmatch(subject) is not None

    return is_picked


def _as_pattern(subject: str) -> str:
    return r"\.".join({"*": "[^.]+", ">": ".+"}.get(token, re.escape(token)) for token in subject.split("."))


def _also(reason: str, error: str) -> str:
    """Why to list, with what last stood against it; short however often that happens."""
    return reason if reason == "start" else f"{reason.partition(' (then: ')[0]} (then: {error})"
