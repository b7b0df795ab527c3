"""The operations of a script, carried out on a queue: cluster changes as deliveries, attempts as a
scheduler's messages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from podyard.bus import Delivery
from podyard.cluster.pods import PodView
from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.proto import actions
from podyard.proto.actions import ActionType
from podyard.proto.message import PodRef
from podyard.proto.queue_api import ActivateRequest, AttemptResult, DoneRequest, PreemptingRequest
from podyard.queue.core import restart
from podyard.queue.core.messages import Incoming
from tests.conformance import profiles
from tests.conformance.deliveries import Manifest, Stream, name_of, uid_of
from tests.conformance.joined import node_of, told_again, view_of
from tests.conformance.out_of_tree import OutOfTree, plugin_of
from tests.conformance.queue_stage import SESSION, Call, QueueStage

MICROSECONDS: Final = 1_000_000


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One operation, with what it needs."""

    op: str
    seconds: float = 0.0
    object: dict[str, Any] | None = None
    kind: str = ""
    name: str = ""
    pod: str = ""
    uid: str = ""
    pods: list[str] = []
    unschedulable_plugins: list[str] = []
    pending_plugins: list[str] = []
    nominate: str | None = None
    error: bool = False
    no_nodes: bool = False
    node: str = ""
    running: bool = False
    victim: str = ""
    resource: str = ""
    actions: list[str] = []
    label: str = ""
    old: dict[str, Any] | None = None
    new: dict[str, Any] | None = None


class NeverPoppedError(LookupError):
    """A script goes on with a pod that it should have popped before."""

    def __init__(self, pod: str) -> None:
        super().__init__(f"{pod} was never popped")


class Player:
    """One script's cluster and queue."""

    def __init__(
        self, config: dict[str, Any] | None, plugins: Sequence[OutOfTree], objects: Sequence[Manifest]
    ) -> None:
        configured = profiles.configured(config, [plugin_of(described) for described in plugins])
        self.stage = QueueStage(
            configured.profiles, configured.queue_settings, extenders=bool(configured.configuration.extenders)
        )
        self._stream = Stream()
        self._objects: dict[tuple[str, str], Manifest] = {}
        """Last version of every object, by kind and name."""
        self._popped: dict[str, str] = {}
        """Uid of the last pop, by name."""
        self._versions: dict[str, int] = {}
        """Sequences of pods as they were assumed, by uid."""
        self._microseconds = 0
        view = self.stage.view
        view.begin_listing()
        view.end_listing(0)
        for manifest in objects:
            for delivery in self._put(manifest):
                view.apply(delivery)
        restart.fill(self.stage.queue, view.pods.values(), {}, configured.names, self.stage.now)
        self.stage.take_calls()

    def play(self, step: Step) -> str:
        """Carry a step out; returns the name of the popped pod, if it is a pop and there was one."""
        operation: Callable[[Step], str | None] = getattr(self, f"_{_snake(step.op)}")
        return operation(step) or ""

    # ---- time and pops
    # -------------------------------------------------------------------------------------------------------

    def _advance(self, step: Step) -> None:
        self._microseconds += round(step.seconds * MICROSECONDS)
        self.stage.now = self._microseconds / MICROSECONDS

    def _pop(self, step: Step) -> str:
        pod = self.stage.pop()
        if pod is None:
            return ""
        name = "/".join(pod.key)
        self._popped[name] = pod.uid
        return name

    def _flush_backoff(self, step: Step) -> None:
        with self.stage.noting(Call(name="flushBackoff")):
            self.stage.queue.flush_backoff(self.stage.now)

    def _flush_unschedulable(self, step: Step) -> None:
        with self.stage.noting(Call(name="flushUnschedulable")):
            self.stage.queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT), self.stage.now)

    # ---- the cluster
    # ---------------------------------------------------------------------------------------------------------

    def _create(self, step: Step) -> None:
        self._write(step.object or {})

    def _update(self, step: Step) -> None:
        self._write(step.object or {})

    def _delete(self, step: Step) -> None:
        manifest = self._objects.pop((step.kind, step.name))
        view = self.stage.view.pods_by_uid.get(uid_of(manifest))
        if view is not None and view.bound is not None:
            self._deliver(self._stream.commit(released=[view.bound]))
        self._deliver(self._stream.remove(manifest))

    def _write(self, manifest: Manifest) -> None:
        for delivery in self._put(manifest):
            self._deliver(delivery)

    def _put(self, manifest: Manifest) -> list[Delivery]:
        """A version, and the binding of a pod that gets its node; a pod that got it from the scheduler was
        written without."""
        key = manifest["kind"], _key_of(manifest)
        old, self._objects[key] = self._objects.get(key), manifest
        if manifest["kind"] != "Pod":
            return [self._stream.put(manifest)]
        if old is not None and told_again(old, manifest):
            self.stage.view.apply(self._stream.put(manifest))  # caches take it, handlers do not look
            return []
        if old is None or uid_of(old) != uid_of(manifest):
            put = [self._stream.put(manifest)]
            return [*put, self._stream.commit([manifest])] if node_of(manifest) else put
        if node_of(manifest) and not node_of(old):
            changed = {**manifest, "spec": {**manifest["spec"], "nodeName": ""}}
            put = [] if _alike(old, changed) else [self._stream.put(changed)]
            self._publish_nomination(manifest)
            return [*put, self._stream.commit([manifest])]
        return [self._stream.put(manifest)]

    def _publish_nomination(self, manifest: Manifest) -> None:
        """By the time a pod is bound, the node that the queue keeps for it is a fact, though scripts do not
        say so."""
        node = self.stage.queue.nominator.node_of(uid_of(manifest))
        if node:
            self.stage.view.apply(self._stream.nominate(manifest, node))

    def _deliver(self, delivery: Delivery) -> None:
        self.stage.apply(self.stage.view.apply(delivery))

    def _move(self, step: Step) -> None:
        """A raw event, without a change of the cluster."""
        action = ActionType.NONE
        for name in step.actions:
            action |= actions.parse(name)
        event = ClusterEvent(step.resource, action, step.label)
        incoming = Incoming(event=event, old=_object(step.old), new=_object(step.new))
        self.stage.queue.move_wanted(incoming, self.stage.now)

    # ---- attempts ------------------------------------------------------------------------------------------

    def _fail(self, step: Step) -> None:
        outcome = "unschedulable" if step.unschedulable_plugins or step.pending_plugins else "error"
        nominated = step.nominate
        if nominated is None:
            manifest = self._objects.get(("Pod", step.pod), {})
            nominated = (manifest.get("status") or {}).get("nominatedNodeName", "")
        self._done_with(step, outcome, nominated_node=nominated)

    def _done(self, step: Step) -> None:
        self._done_with(step, "scheduled", node=self.stage.assumed.get(self._uid(step), "") or "somewhere")

    def _assume(self, step: Step) -> None:
        """In the service a scheduler tells of it with `done`; there the pod leaves its place among those in
        flight at once."""
        uid = self._uid(step)
        self.stage.assumed[uid] = step.node
        self._versions[uid] = self.stage.view.pods_by_uid[uid].sequence
        attempt = self.stage.leader.attempts.get(self.stage.attempts.get(uid, ""))
        if attempt is not None:
            self.stage.leader.assume(attempt, step.node)

    def _bind_error(self, step: Step) -> None:
        uid = self._uid(step)
        self._done_with(step, "bindError", assumed=self.stage.assumed.pop(uid), version=self._versions.pop(uid))

    def _done_with(self, step: Step, outcome: Any, **more: Any) -> None:
        """
        :raises NeverPoppedError: the queue has not given out the pod that this is a result of
        """
        uid = self._uid(step)
        if uid not in self.stage.attempts:
            raise NeverPoppedError(step.pod)
        namespace, _, name = step.pod.partition("/")
        result = AttemptResult(
            namespace=namespace,
            name=name,
            uid=uid,
            attempt=self.stage.attempts[uid],
            outcome=outcome,
            unschedulable_plugins=tuple(step.unschedulable_plugins),
            pending_plugins=tuple(step.pending_plugins),
            **more,
        )
        self.stage.leader.done(DoneRequest(session=SESSION, results=(result,)), self.stage.now)

    def _activate(self, step: Step) -> None:
        pods = tuple(self._ref(name) for name in step.pods)
        with self.stage.noting(Call(name="activate")):
            self.stage.leader.activate(ActivateRequest(session=SESSION, pods=pods), self.stage.now)

    def _preempting(self, step: Step) -> None:
        """The plugin's state. Its end is without the activation that goes with it: scripts activate
        themselves."""
        uid = self._uid(step)
        if not step.running:
            self.stage.end_preemption(uid)
            return
        request = PreemptingRequest(
            session=SESSION,
            pod=self._ref(step.pod),
            running=True,
            victim=self._ref(step.victim) if step.victim else None,
            attempt=self.stage.attempts.get(uid, ""),
        )
        self.stage.leader.preempting(request, self.stage.now)

    def _uid(self, step: Step) -> str:
        return step.uid or self._popped.get(step.pod, "")

    def _ref(self, name: str) -> PodRef:
        manifest = self._objects.get(("Pod", name))
        namespace, _, only = name.partition("/")
        return PodRef(namespace=namespace, name=only, uid="" if manifest is None else uid_of(manifest))


def _key_of(manifest: Manifest) -> str:
    """As scripts name objects: with the namespace if the manifest has one."""
    return name_of(manifest) if manifest["metadata"].get("namespace") else manifest["metadata"]["name"]


def _alike(old: Manifest, new: Manifest) -> bool:
    """Whether nothing but the version differs."""
    return _without_version(old) == _without_version(new)


def _without_version(manifest: Manifest) -> Mapping[str, Any]:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "resourceVersion"}
    spec = {key: value for key, value in manifest["spec"].items() if key != "nodeName"}
    return {**manifest, "metadata": metadata, "spec": spec}


def _object(manifest: Manifest | None) -> Any:
    """What a hint is handed."""
    if manifest is None:
        return None
    view = view_of(manifest)
    if isinstance(view, PodView):
        return view.pod
    return getattr(view, "node", view)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
