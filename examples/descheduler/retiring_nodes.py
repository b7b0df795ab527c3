"""RetiringNodes: pods leave a node whose time is over, as an annotation of the node says."""

from podyard.descheduler.core import arguments
from podyard.descheduler.core.arguments import Namespaces, PluginArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Verdict
from podyard.objects import times


class Args(PluginArgs, frozen=True, kw_only=True):
    annotation: str = "example.com/retire-at"
    namespaces: Namespaces | None = None


class RetiringNodes:
    NAME = "RetiringNodes"
    ARGS = Args

    def __init__(self, args, handle):
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces)

    @classmethod
    def faults(cls, args):
        return arguments.namespace_faults(args.namespaces)

    def deschedule(self, nodes):
        for node in nodes:
            if not self._is_over(node):
                continue
            for pod in self._handle.state.pods_on(node.metadata.name):
                if not self._candidates.may_go(pod):
                    continue
                answer = yield Evict(pod, "its node is to retire")
                if answer is Answer.TOTAL_LIMIT:
                    return
                if answer is Answer.NODE_LIMIT:
                    break

    def is_better(self, pod, target):
        retires = self._is_over(target.node)
        return Verdict(not retires, ("it is to retire, too",) if retires else ())

    def _is_over(self, node):
        retire_at = node.metadata.annotations.get(self._args.annotation)
        return retire_at is not None and times.seconds_of(retire_at) <= self._handle.now
