"""Rehearsals, one at a time: where a pod would go if it were tried now, for people.

A rehearsal is a dialogue as an attempt is, and runs between attempts. It changes nothing: no assumption, no
nomination, no record, and nothing that is measured of attempts
(docs/rules.md, where-a-pod-would-go-changes-nothing).
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from msgspec.structs import replace

from podyard.cluster.pods import PodView
from podyard.framework import answers, rehearsal
from podyard.framework.extenders import Answers, Calls
from podyard.framework.interfaces import PreEnqueue, UsesObjects
from podyard.framework.profile import Profile
from podyard.framework.rehearsal import NodesAlike, Rehearsed, Verdict
from podyard.framework.status import Code, PluginError, described
from podyard.objects.pod import PodStatus
from podyard.proto import codec, streams
from podyard.proto.decisions import NodeScore
from podyard.proto.message import DEFAULT_SCHEDULER
from podyard.proto.scheduler_api import NodesVerdict, PluginVerdict, WouldGoReply
from podyard.scheduler.core.effects import AskExtenders, Declined, Reply
from podyard.scheduler.core.measured import DEFAULT_PREEMPTION
from podyard.scheduler.core.messages import Would
from podyard.scheduler.core.outcomes import Outcomes
from podyard.scheduler.core.placing import Placing, View
from podyard.scheduler.core.requests import Requests

BEST: Final = 3
"""Nodes of which every answer tells the scores."""
LARGEST_BYTES: Final = streams.MAX_PAYLOAD_BYTES * 3 // 4
"""Of an answer: nodes are left out until it is no larger."""
NOT_THERE: Final = 'no pod "{}" in namespace "{}": this scheduler has read up to position {}'
NO_PROFILE: Final = 'the pod is for a scheduler called "{}", and there is no profile of that name: there are {}'
NEW_SESSION: Final = "the scheduler began a new session meanwhile: ask again"
_LIKE_IT: Final = "-one-more"
"""Ends the uid of one more pod like a given one."""
_NEW: Final = PodStatus(phase="Pending")


class Rehearsals:
    """What is said goes to `outcomes`."""

    def __init__(
        self, placing: Placing, view: View, requests: Requests, outcomes: Outcomes, stopwatch: Callable[[], float]
    ) -> None:
        """:param stopwatch: seconds of a monotonic clock, to tell what a rehearsal took"""
        self._placing = placing
        self._view = view
        self._requests = requests
        self._outcomes = outcomes
        self._stopwatch = stopwatch
        self._show_objects()
        self.waiting: deque[Would] = deque()
        self.running: int | None = None
        """The ticket of the question whose cycle runs within this step."""
        self._asked: Would | None = None
        """The one that waits for an answer of extenders."""
        self._dialogue: Generator[Calls, Answers, None] | None = None
        self._question = 0
        """The number of the last question to extenders: below 0, those of attempts are above."""

    @property
    def asks(self) -> bool:
        """Whether extenders are asked: nothing may change meanwhile."""
        return self._asked is not None

    def put(self, asked: Would) -> None:
        """To be run when nothing else is under way."""
        self.waiting.append(asked)

    def run(self) -> None:
        """Those that wait, until one has to ask extenders."""
        while self.waiting and not self.asks:
            asked = self.waiting.popleft()
            self._go_on(asked, self._rehearsal(asked), None)

    def answered(self, question: int, said: Answers) -> None:
        """What the extenders said. An answer that is not awaited (any more) is ignored."""
        asked, dialogue = self._asked, self._dialogue
        if asked is None or dialogue is None or question != self._question:
            return
        self._asked = self._dialogue = None
        self._go_on(asked, dialogue, said)

    def give_up(self) -> bool:
        """What extenders are asked is of no use any more; returns whether they were."""
        asked = self._asked
        if asked is None:
            return False
        self.close()
        self._outcomes.add(Declined(asked.ticket, NEW_SESSION))
        return True

    def close(self) -> None:
        """Nobody waits for the answer any more."""
        if self._dialogue is not None:
            self._dialogue.close()
        self._asked = self._dialogue = None

    # ---- the dialogue --------------------------------------------------------------------------------------

    def _go_on(self, asked: Would, dialogue: Generator[Calls, Answers, None], said: Answers | None) -> None:
        self.running = asked.ticket
        try:
            calls = next(dialogue) if said is None else dialogue.send(said)
        except StopIteration:
            self.running = None
            return
        self.running = None
        self._asked, self._dialogue = asked, dialogue
        self._question -= 1
        self._outcomes.add(AskExtenders(self._question, calls))

    def _rehearsal(self, asked: Would) -> Generator[Calls, Answers, None]:
        placing, position, start = self._placing, self._view.position, self._stopwatch()
        given = asked.pod
        stored = given if isinstance(given, PodView) else self._view.pods.get(given)
        if stored is None:
            namespace, name = asked.pod if isinstance(asked.pod, tuple) else ("", "")
            self._outcomes.add(Declined(asked.ticket, NOT_THERE.format(name, namespace, position)))
            return
        profile = placing.profiles.get(stored.stored.spec.scheduler_name or DEFAULT_SCHEDULER)
        if profile is None:
            names = ", ".join(sorted(placing.profiles))
            self._outcomes.add(Declined(asked.ticket, NO_PROFILE.format(stored.stored.spec.scheduler_name, names)))
            return
        placed_on = self._placed_on(stored)
        pod = _one_more(stored) if placed_on or stored.deleting or stored.ended else placing.nominations.joined(stored)
        gates = _gates(profile, pod)
        found = yield from rehearsal.rehearse(profile, placing.cluster, pod, placing.extenders)
        reply = WouldGoReply(
            scheduler=self._requests.session,
            position=position,
            duration_us=int((self._stopwatch() - start) * 1e6),
            namespace=pod.namespace,
            name=pod.name,
            profile=profile.name,
            gates=gates,
            placed_on=placed_on,
        )
        self._outcomes.add(Reply(asked.ticket, fitting(reply, found, asked.limit, pod.nominated_node)))

    def _placed_on(self, pod: PodView) -> str:
        placed = self._placing.table.placed(pod.uid)
        if placed is not None and placed.bound is not None:
            return placed.bound.node
        return pod.node_name

    def _show_objects(self) -> None:
        """Plugins that read other objects before a cycle are told where these are."""
        for profile in self._placing.profiles.values():
            for plugin in profile.pre_enqueue:
                if isinstance(plugin, UsesObjects):
                    try:
                        plugin.use_objects(self._view)
                    except Exception as fault:  # the boundary to plugins
                        self._placing.cluster.faults.note(PluginError.wrapping(plugin.name, "use_objects", fault))


def _gates(profile: Profile, pod: PodView) -> tuple[PluginVerdict, ...]:
    """What PreEnqueue plugins say. Which preemptions run only the queue knows, so its plugin is not asked."""
    said = [_gate(plugin, pod) for plugin in profile.pre_enqueue if plugin.name != DEFAULT_PREEMPTION]
    return tuple(one for one in said if one is not None)


def _gate(plugin: PreEnqueue, pod: PodView) -> PluginVerdict | None:
    try:
        status = answers.status(plugin.pre_enqueue(pod.pod))
    except Exception as fault:  # the boundary to plugins
        return PluginVerdict(plugin=plugin.name, reasons=(f"PreEnqueue failed: {described(fault)}",))
    if status.ok:
        return None
    return PluginVerdict(plugin=plugin.name, reasons=status.reasons, unresolvable=status.code == Code.UNRESOLVABLE)


def _one_more(pod: PodView) -> PodView:
    """A new pod like this one, that names no node."""
    stored, uid = pod.stored, f"{pod.uid}{_LIKE_IT}"
    again = replace(
        stored,
        metadata=replace(stored.metadata, uid=uid, deletion_timestamp=None),
        spec=replace(stored.spec, node_name=""),
        status=_NEW,
    )
    return PodView(again, pod.key, uid, pod.sequence)


# ---- the answer --------------------------------------------------------------------------------------------


def fitting(reply: WouldGoReply, found: Rehearsed, limit: int, nominated: str) -> WouldGoReply:
    """The answer with what was found; of nodes, and then of verdicts, as many as a message holds.

    :param limit: nodes that are told by name
    :param nominated: the node that the pod waits for
    """
    most = len(found.rejected)
    while True:
        full = _told(reply, found, limit, most, nominated)
        if len(codec.encode(full)) <= LARGEST_BYTES or not most:
            return full
        limit, most = (limit // 2, most) if limit else (0, most // 2)


def _told(reply: WouldGoReply, found: Rehearsed, limit: int, most: int, nominated: str) -> WouldGoReply:
    result = found.result
    verdicts = tuple(_alike(one, limit) for one in found.rejected[:most])
    scores: tuple[NodeScore, ...] = result.scores[: max(BEST, limit)]
    everybody = len(result.scores) + sum(len(one.names) for one in found.rejected)
    told = len(scores if limit else result.scores)
    told += sum(len(one.names) if limit else one.nodes for one in verdicts)
    return replace(
        reply,
        node=result.node,
        equals=found.equals,
        nodes_total=result.nodes_total,
        nodes_feasible=result.nodes_feasible,
        rejections=result.rejections,
        nearest=result.nearest,
        scores=scores,
        message=result.message,
        nominated_node=nominated if result.nominated_node is None else result.nominated_node,
        victims=result.victims,
        error=result.error,
        verdicts=verdicts,
        left_out=everybody - told,
    )


def _alike(one: NodesAlike, limit: int) -> NodesVerdict:
    return NodesVerdict(
        nodes=len(one.names), verdicts=tuple(_plugin(verdict) for verdict in one.verdicts), names=one.names[:limit]
    )


def _plugin(verdict: Verdict) -> PluginVerdict:
    return PluginVerdict(plugin=verdict.plugin, reasons=verdict.reasons, unresolvable=verdict.unresolvable)
