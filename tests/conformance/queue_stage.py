"""The queue as its service assembles it, on a clock of the case, with a note of every call that the handlers make."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.framework.events import ClusterEvent
from podyard.framework.profile import Profile
from podyard.objects.core import Pod
from podyard.proto import actions
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import AttemptResult, DoneRequest, PopRequest
from podyard.queue import assembly
from podyard.queue.core.changes import Changes
from podyard.queue.core.effects import Incoming
from podyard.queue.settings import QueueSettings
from tests.conformance.deliveries import Manifest, namespace_of, uid_of

SESSION: Final = "conformance"


class QueueStage:
    """Leader, queue and handler of one case; nothing happens but what the case says."""

    def __init__(self, profiles: Sequence[Profile], settings: QueueSettings | None = None) -> None:
        self.view = ClusterView()
        self.now = 0.0
        self.leader = assembly.build_leader(
            profiles,
            assembly.registries(profiles),
            settings or QueueSettings(),
            epoch=1,
            view=self.view,
            new_trace=lambda: "",
            timer=lambda: 0.0,
        )
        self.queue = self.leader.queue
        self._changes = Changes(self.leader, [profile.name for profile in profiles])
        self._digests = {profile.name: profile.digest for profile in profiles}
        self._calls: list[dict[str, Any]] = []
        self._pops = 0
        self._last = False
        """Whether the change under way ends what the queue has to do with its object."""
        self._watch()

    def take_calls(self) -> list[dict[str, Any]]:
        """The calls since last asked, as suite `classify` spells them."""
        calls, self._calls = self._calls, []
        return calls

    def hear_all(self) -> None:
        """Let the handlers tell the queue what nobody waits for, too: for the handlers' own sake."""
        self.queue.wants = lambda event, missed=False: True

    def apply(self, change: Change | None) -> None:
        """One change of the cluster."""
        if change is not None:
            self._last = change.new is None or change.bound
            self._changes.apply(change, self.now)

    def assume(self, manifest: Manifest, node: str) -> None:
        """A scheduler pops the pod and finds a node for it."""
        attempt = self.pop(uid_of(manifest))
        result = AttemptResult(
            namespace=namespace_of(manifest),
            name=manifest["metadata"]["name"],
            uid=uid_of(manifest),
            attempt=attempt,
            outcome="scheduled",
            node=node,
        )
        self.leader.done(DoneRequest(session=SESSION, results=(result,)), self.now)

    def pop(self, uid: str) -> str:
        """The attempt by which a pod was popped.

        :raises LookupError: if the queue gives another pod, or none
        """
        self._pops += 1
        request = PopRequest(session=SESSION, pop_id=str(self._pops), digests=self._digests, max_pods=1)
        reply = self.leader.pop(request, self.now, 0)
        if reply is None or not reply.pods or reply.pods[0].uid != uid:
            raise LookupError(f"the queue gave {reply} instead of {uid}")
        return reply.pods[0].attempt

    def _is_assumed(self, uid: str) -> bool:
        """Pods that wait for their binding are kept by the queue here; in the reference they have left it."""
        pod = self.queue.pods.get(uid)
        return pod is not None and pod.pool == "binding"

    def _watch(self) -> None:
        """Note the calls that handlers make, in their order."""
        queue = self.queue
        add, update, delete, move_all = queue.add, queue.update, queue.delete, queue.move_all

        def noted_add(pod: Any, now: float) -> None:
            self._calls.append({"call": "add"})
            add(pod, now)

        def noted_update(uid: str, *args: Any, **more: Any) -> None:
            if not self._is_assumed(uid):
                self._calls.append({"call": "update"})
            update(uid, *args, **more)

        def noted_delete(uid: str) -> Any:
            assumed = self._is_assumed(uid) and not self._last
            found = delete(uid)
            if found is not None and not assumed:
                self._calls.append({"call": "delete"})
            return found

        def noted_move_all(incoming: Incoming, now: float, **more: Any) -> None:
            self._calls.append(_move_all(incoming, more))
            move_all(incoming, now, **more)

        queue.add, queue.update, queue.delete, queue.move_all = noted_add, noted_update, noted_delete, noted_move_all


def event_of(resource: str, action: ActionType) -> dict[str, Any]:
    """An event as the data spells it."""
    label = ClusterEvent(resource, action).label
    return {"resource": resource, "actions": list(actions.names(action)), "value": int(action), "label": label}


def _move_all(incoming: Incoming, more: Mapping[str, Any]) -> dict[str, Any]:
    limit = more.get("max_priority")
    told = {
        "call": "moveAll",
        "event": event_of(incoming.event.resource, incoming.event.action),
        "oldObj": incoming.old is not None,
        "newObj": incoming.new is not None,
        "preCheck": "none" if limit is None else f"priority<={limit}",
    }
    if isinstance(incoming.old, Pod):
        told["oldNodeName"] = incoming.old.spec.node_name
    return told
