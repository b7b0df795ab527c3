"""Following everything that happens, as lines. Shell of `podyard watch`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import anyio
import msgspec

from podyard.bus.connection import Bus
from podyard.bus.delivery import Delivery
from podyard.cli.render import watch as rendered
from podyard.cluster.changes import Change
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.objects.selectors import EVERYTHING, Selector
from podyard.proto import codec, streams, subjects
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.events import BareEvent
from podyard.proto.operations import DeadLetter, K8sEvent
from podyard.proto.requeues import RequeueRecord
from podyard.runtime import clock
from podyard.shell import stream_reading
from podyard.shell.informer import WITH_NOMINATIONS, Informer

Labels: TypeAlias = Mapping[str, str]
LabelsOf: TypeAlias = Callable[[str, str, str], Labels | None]
"""Labels of an object by resource, namespace and name; None if it is not known."""


class Filter(NamedTuple):
    """Which lines to show; empty fields mean everything."""

    kinds: frozenset[str]
    namespace: str = ""
    name: str = ""
    resource: str = ""
    selector: Selector = EVERYTHING

    def wants(self, line: rendered.Line, labels_of: LabelsOf) -> bool:
        """Whether to show a line; one about no single object passes filters for objects only if it mentions
        one that passes them."""
        if self.kinds and line.kind not in self.kinds:
            return False
        if self.resource and line.resource != self.resource:
            return False
        if line.kind in ("requeue", "bare", "dead"):
            return self._mentions(line, labels_of)
        return self._is_about(line.resource, line.namespace, line.name, labels_of)

    def _mentions(self, line: rendered.Line, labels_of: LabelsOf) -> bool:
        if not (self.namespace or self.name) and self.selector.everything:
            return True
        if not isinstance(line.record, RequeueRecord):
            return False
        about = [*line.record.moved, *line.record.skipped]
        return any(self._is_about(subjects.PODS, one.namespace, one.name, labels_of) for one in about)

    def _is_about(self, resource: str, namespace: str, name: str, labels_of: LabelsOf) -> bool:
        if self.namespace not in ("", namespace) or self.name not in ("", name):
            return False
        if self.selector.everything:
            return True
        labels = labels_of(resource, namespace, name)
        return labels is not None and self.selector.matches(labels)


class Watcher:
    """Hands lines to `show` as things happen."""

    def __init__(self, bus: Bus, chosen: Filter, show: Callable[[rendered.Line], None]) -> None:
        self._bus = bus
        self._filter = chosen
        self._show = show
        self._listed = False
        self._view = ClusterView()

    async def run(self, started: anyio.Event | None = None) -> None:
        """Follow until cancelled; `started` is set once nothing that happens later is missed.

        :raises NotFound: if the streams are not there
        """
        await self._bus.last_sequence(streams.CLUSTER.name)
        events = [anyio.Event() for _ in range(4)]
        async with anyio.create_task_group() as tasks:
            follow = (
                (streams.DECISIONS, AttemptRecord, rendered.attempt),
                (streams.REQUEUES, RequeueRecord, rendered.requeue),
                (streams.K8SEVENTS, K8sEvent, rendered.event),
                (streams.DEAD, DeadLetter, rendered.dead),
            )
            for (stream, message, render), ready in zip(follow, events, strict=True):
                tasks.start_soon(self._records, stream, message, render, ready)
            await self._bus.subscribe(subjects.ALL_BARE_EVENTS, self._bare)
            informer = Informer(self._bus, self._view, WITH_NOMINATIONS, service="cli", on_changes=self._changes)
            tasks.start_soon(informer.run)
            await informer.synced()
            self._listed = True
            for ready in events:
                await ready.wait()
            if started is not None:
                started.set()

    async def _records(
        self,
        stream: streams.StreamSpec,
        message: type[msgspec.Struct],
        render: Callable[[Any], rendered.Line],
        ready: anyio.Event,
    ) -> None:
        decoder = codec.decoder(message)

        def deliver(delivery: Delivery) -> None:
            try:
                self._tell(render(decoder.decode(delivery.payload)))
            except MessageError as error:
                self._tell(_unreadable(delivery, error.reason))

        def missed(reason: str) -> None:
            text = f"{stream.name}: the reading was interrupted ({reason}); what was stored meanwhile is not shown"
            self._show(rendered.Line(at=clock.now(), kind="gap", text=text))

        nothing = stream.subjects[0].replace(">", stream_reading.NOTHING)
        await stream_reading.follow(
            self._bus, stream.name, stream.subjects, deliver, nothing=nothing, missed=missed, started=ready
        )

    def _changes(self, changes: Sequence[Change]) -> None:
        if self._listed:
            now = clock.now()
            for change in changes:
                self._tell(rendered.change(change, now), change.new if change.new is not None else change.old)

    def _bare(self, subject: str, payload: bytes, trace: str) -> None:
        del subject, trace
        self._tell(rendered.bare(codec.decode(BareEvent, payload), clock.now()))

    def _tell(self, line: rendered.Line | None, item: Any = None) -> None:
        """:param item: the object that the line is about, if it is at hand; it may be gone from the view"""

        def labels_of(resource: str, namespace: str, name: str) -> Labels | None:
            return _labels(item if item is not None else self._known(resource, namespace, name))

        if line is not None and self._filter.wants(line, labels_of):
            self._show(line)

    def _known(self, resource: str, namespace: str, name: str) -> Any:
        if resource == subjects.PODS:
            return self._view.pods.get((namespace, name))
        if resource == subjects.NODES:
            return self._view.nodes.get(name)
        return self._view.objects(resource).get((namespace, name))


def _labels(item: Any) -> Labels | None:
    if item is None:
        return None
    return item.labels if isinstance(item, PodView | NodeView) else item.metadata.labels


def _unreadable(delivery: Delivery, reason: str) -> rendered.Line:
    return rendered.Line(at=delivery.stored_at, kind="dead", text=f"{delivery.subject} cannot be read: {reason}")
