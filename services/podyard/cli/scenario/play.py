"""Doing a scenario's steps on the bus, in their time."""

import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.lowlevel
import msgspec

from podyard.bus.connection import Bus
from podyard.cli import objects_client
from podyard.cli.errors import CliError, InputError
from podyard.cli.scenario import load, model, waiting
from podyard.cli.stored_objects import of_resources
from podyard.cluster.view import ClusterView
from podyard.proto import codec, subjects
from podyard.proto.events import BareEvent
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectResult
from podyard.runtime import clock
from podyard.shell.informer import Followed, Informer
from podyard.telling import words

FLUSH_EVERY: Final = 256
"""Events sent between two looks at the clock and at the connection."""

Say = Callable[[str], None]


class Player:
    """Plays one scenario. `say` gets a line a step."""

    def __init__(self, bus: Bus, say: Say, *, why: str) -> None:
        self._bus = bus
        self._say = say
        self._who = objects_client.person()
        self._why = why
        self._view = ClusterView()
        self._changed = anyio.Event()

    async def play(self, scenario: model.Scenario) -> None:
        """Do all steps in order.

        :raises CliError: a step could not be done, or what it waited for did not come in time
        """
        listed = of_resources([subjects.PODS, subjects.NODES])
        informer = Informer(self._bus, self._view, Followed(listed, listed), service="cli", on_changes=self._note)
        async with anyio.create_task_group() as background:
            background.start_soon(informer.run)
            await informer.synced()
            self._background = background
            self._started = time.monotonic()
            await self._steps(scenario.steps, Path(scenario.directory))
            background.cancel_scope.cancel()

    def _note(self, changes: object) -> None:
        del changes
        self._changed.set()
        self._changed = anyio.Event()

    async def _steps(self, steps: Sequence[model.Step], directory: Path, quiet: bool = False) -> None:
        for step in steps:
            await self._until(step)
            done = await self._act(step.action, directory)
            if not quiet:
                self._say(f"{time.monotonic() - self._started:7.2f}s  {step.title}: {done}")

    async def _until(self, step: model.Step) -> None:
        if step.at_s is not None:
            await anyio.sleep(max(self._started + step.at_s - time.monotonic(), 0))
        elif step.after_s:
            await anyio.sleep(step.after_s)

    async def _act(self, action: model.Action, directory: Path) -> str:
        if isinstance(action, model.Apply):
            return _told(await objects_client.apply(self._bus, action.documents, why=self._why, who=self._who))
        if isinstance(action, model.Delete):
            return _told(
                await objects_client.delete(
                    self._bus, action.refs, grace_period_s=action.grace_period_s, why=self._why, who=self._who
                ),
                missing_is_fine=True,
            )
        if isinstance(action, model.Patch):
            return await self._patch(action)
        if isinstance(action, model.Publish):
            return await publish(self._bus, action, who=self._who, why=self._why)
        if isinstance(action, model.Signals):
            return await self._signals(action)
        if isinstance(action, model.Wait):
            return await self._wait(action)
        return await self._repeat(action, directory)

    async def _patch(self, action: model.Patch) -> str:
        ref = action.ref
        document = await stored_document(self._bus, ref)
        merged = merge(document, action.change)
        return _told(await objects_client.apply(self._bus, [merged], why=self._why, who=self._who))

    async def _signals(self, action: model.Signals) -> str:
        if not action.for_s:
            self._send_signals(action)
            return f"sent for {action.said.node}"
        self._background.start_soon(self._repeat_signals, action)
        return f"for {action.said.node} every {action.every_s:g} s for {action.for_s:g} s"

    async def _repeat_signals(self, action: model.Signals) -> None:
        with anyio.move_on_after(action.for_s):
            while True:
                self._send_signals(action)
                await anyio.sleep(action.every_s)

    def _send_signals(self, action: model.Signals) -> None:
        message = msgspec.structs.replace(action.said, who=self._who, at=clock.now())
        self._bus.send(subjects.signals(message.node), codec.encode(message))

    async def _wait(self, action: model.Wait) -> str:
        begun = time.monotonic()
        with anyio.move_on_after(action.within_s) as limit:
            while not waiting.holds(action, self._view):
                await self._changed.wait()
        if limit.cancelled_caught:
            progress = waiting.progress(action, self._view)
            raise CliError(
                f"waited {action.within_s:g} s in vain for {action.described()}: {progress}",
                "`podyard get pods` and `podyard explain pod NAME` show why",
            )
        return f"{action.described()} after {time.monotonic() - begun:.2f} s"

    async def _repeat(self, action: model.Repeat, directory: Path) -> str:
        begun = time.monotonic()
        for n in range(1, action.times + 1):
            if action.rate:
                await anyio.sleep(max(begun + (n - 1) / action.rate - time.monotonic(), 0))
            await self._steps(load.body(action, n, directory), directory, quiet=True)
        took = time.monotonic() - begun
        return f"{action.times} times in {took:.2f} s"


async def publish(bus: Bus, action: model.Publish, *, who: str, why: str) -> str:
    """Send bare events at their rate; returns what was done, in words."""
    resource, name = action.resource, action.action
    subject = subjects.bare_event(resource, name)
    old, new = (
        codec.NULL if found is None else msgspec.Raw(msgspec.json.encode(found)) for found in (action.old, action.new)
    )
    run = uuid.uuid4().hex
    begun = time.monotonic()
    for index in range(action.count):
        if action.rate:
            await anyio.sleep(max(begun + index / action.rate - time.monotonic(), 0))
        elif index % FLUSH_EVERY == FLUSH_EVERY - 1:
            await anyio.lowlevel.checkpoint()
        message = BareEvent(id=f"{run}-{index}", resource=resource, actions=(name,), who=who, why=why, old=old, new=new)
        bus.send(subject, codec.encode(message))
    took = time.monotonic() - begun
    speed = f" in {took:.2f} s ({action.count / took:,.0f}/s)" if action.count > 1 and took > 0 else ""
    return f"{resource}/{name} published{f' {action.count} times' if action.count > 1 else ''}{speed}"


async def stored_document(bus: Bus, ref: ObjectRef) -> dict[str, Any]:
    """The object as it is stored now.

    :raises InputError: if it is not there
    """
    from podyard.objects import decoding
    from podyard.proto.events import ClusterEvent
    from podyard.proto.streams import CLUSTER

    delivery = await bus.get(CLUSTER.name, subjects.object_(ref.resource, ref.namespace, ref.name))
    if delivery is None or delivery.deleted:
        where = f" in namespace {ref.namespace}" if ref.namespace else ""
        raise InputError(f"{ref.resource}/{ref.name}{where} is not there")
    return decoding.document(codec.decode(ClusterEvent, delivery.payload).object)


def merge(document: Any, change: Any) -> Any:
    """A JSON merge patch. Source: RFC 7386."""
    if not isinstance(change, dict):
        return change
    fields = cast("dict[str, Any]", change)
    merged = dict(cast("dict[str, Any]", document)) if isinstance(document, dict) else {}
    for key, value in fields.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def _told(results: Sequence[ObjectResult], *, missing_is_fine: bool = False) -> str:
    """Counts by outcome.

    :raises CliError: if something was refused
    """
    counts: dict[str, int] = {}
    for result in results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
        fine = result.outcome in objects_client.GOOD or (missing_is_fine and result.outcome == "notFound")
        if not fine:
            raise CliError(f"{result.resource}/{result.name} {words.spoken(result.outcome)}: {result.reason}")
    return ", ".join(f"{count} {words.spoken(outcome)}" for outcome, count in counts.items()) or "nothing"
