"""Where pods would go, and what plugins say of nodes, as lines of text."""

from collections.abc import Iterator, Sequence
from typing import Final

from podyard.cli.explain.would_go import Answers, WouldGo
from podyard.cli.render import tables, times
from podyard.proto.decisions import NodeScore, Rejection, Victim
from podyard.proto.scheduler_api import NodesVerdict, PluginVerdict, WouldGoReply

BEST: Final = 3
"""Nodes of which each plugin's points are shown side by side."""
EXAMPLES: Final = 3
LONGEST_PLUGIN: Final = 27
"""Columns for the names of plugins: NodeResourcesBalancedAllocation is cut."""
SHORTEST_NODE: Final = 8
PREEMPTION: Final = "preemption: "
"""In a pod's message: what follows says why no other pod makes room."""


def of_stored(reply: WouldGoReply, width: int, *, nodes: bool, every: bool) -> list[str]:
    """Of a pod that is there.

    :param width: columns of the terminal
    :param nodes: with what plugins say of nodes
    :param every: of each node by itself
    """
    place = [f"  is on {reply.placed_on}; one more like it"] if reply.placed_on else []
    heading = [f"Pod {reply.namespace}/{reply.name}", *place]
    return _cut([*heading, *_reply(reply, width, nodes=nodes, every=every)], width)


def of_files(found: Answers, width: int, *, nodes: bool, every: bool) -> list[str]:
    """Of each pod of the files."""
    lines: list[str] = []
    for pod in found.pods:
        lines += [*([""] if lines else []), *_pod(pod, width, nodes=nodes, every=every)]
    if found.not_pods:
        lines += ["", f"told of the cluster as it is, without what else is in the file: {', '.join(found.not_pods)}"]
    return _cut(lines, width)


def _cut(lines: list[str], width: int) -> list[str]:
    """The tail of a line that is too long for the terminal is cut."""
    return [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]


def _pod(pod: WouldGo, width: int, *, nodes: bool, every: bool) -> Iterator[str]:
    yield f"{pod.about} in namespace {pod.namespace}"
    yield from (f"  note: {note}" for note in pod.notes)
    if pod.reply is None:
        yield "  would not be scheduled:"
        yield from (f"    {fault}" for fault in pod.refused)
        return
    if pod.reply.placed_on:
        yield f"  is put on {pod.reply.placed_on}, which it names, and no scheduler is asked; if it named none:"
    yield from _reply(pod.reply, width, nodes=nodes, every=every)


def _reply(reply: WouldGoReply, width: int, *, nodes: bool, every: bool) -> Iterator[str]:
    for gate in reply.gates:
        yield f"  is not tried as long as {gate.plugin} says: {', '.join(gate.reasons)}; once it is:"
    yield from _outcome(reply)
    yield from _preemption(reply)
    if len(reply.scores) > 1 and not every:
        yield ""
        yield from _points(reply.scores[:BEST], width)
    if nodes:
        yield ""
        yield from _each(reply) if every else _summary(reply)


def _outcome(reply: WouldGoReply) -> Iterator[str]:
    fit = f"{reply.nodes_feasible:,} of {_nodes(reply.nodes_total)} fit{'s' if reply.nodes_feasible == 1 else ''}"
    took = f", rehearsed in {times.duration(reply.duration_us / 1e6)}" if reply.duration_us else ""
    if reply.error:
        yield f"  nobody can say where it would go: {reply.error}"
    elif reply.node:
        equal = f"; {reply.equals:,} are equally good, its uid chooses" if reply.equals > 1 else ""
        yield f"  would go to {reply.node}: {fit}{equal}{took}"
    else:
        yield f"  would go nowhere: {fit}{took}"
        for rejection in reply.rejections:
            yield from _rejection(rejection)
        if reply.nearest and len(reply.rejections) > 1:
            yield f"  {reply.nearest} is nearest to taking it"


def _rejection(one: Rejection) -> Iterator[str]:
    more = ", ..." if one.nodes > len(one.examples) else ""
    names = f"  ({', '.join(one.examples)}{more})" if one.examples else ""
    yield f"  {one.plugin} rejects {_nodes(one.nodes)}: {one.reason}{names}"
    if one.detail:
        yield f"    {f'{one.nearest}: ' if one.nearest else ''}{one.detail}"


def _preemption(reply: WouldGoReply) -> Iterator[str]:
    if reply.victims:
        yield f"  would take room on {reply.nominated_node}, where {_pods(len(reply.victims))} would have to go:"
        yield from (f"    {_victim(victim)}" for victim in reply.victims)
    elif reply.nominated_node:
        yield f"  waits for room on {reply.nominated_node}, which it is nominated to"
    elif not reply.node:
        _, found, why = reply.message.partition(PREEMPTION)
        if found and not all(rejection.unresolvable for rejection in reply.rejections):
            yield f"  {PREEMPTION}{why}"


def _victim(one: Victim) -> str:
    broken = ", against its disruption budget" if one.pdb_violation else ""
    return f"{one.namespace}/{one.name} (priority {one.priority}{broken})"


def _points(scores: Sequence[NodeScore], width: int) -> list[str]:
    """The best nodes side by side, a line for each plugin."""
    room = max(SHORTEST_NODE, (width - LONGEST_PLUGIN - 2) // BEST - tables.GAP)
    names = [tables.without_middle(score.node, room) for score in scores]
    plugins = list(dict.fromkeys(plugin for score in scores for plugin in score.plugins))
    rows = [["total", *(f"{score.total:,}" for score in scores)]]
    rows += [
        [tables.without_middle(plugin, LONGEST_PLUGIN), *(str(score.plugins.get(plugin, "-")) for score in scores)]
        for plugin in plugins
    ]
    return [f"  {line}" for line in tables.plain_lines(["BEST NODES", *names], rows)]


def _summary(reply: WouldGoReply) -> Iterator[str]:
    """Nodes of which all plugins say the same stand together."""
    yield "what plugins say of nodes"
    if reply.nodes_feasible:
        best = [f"{score.node} {score.total:,}" for score in reply.scores]
        more = ", ..." if reply.nodes_feasible > len(best) else ""
        yield f"  {_nodes(reply.nodes_feasible)}: fit{'s' if reply.nodes_feasible == 1 else ''}"
        if best:
            yield f"    best: {', '.join(best)}{more}"
        elif reply.node:
            yield f"    {reply.node}, the only one: nobody is asked how good it is"
    for one in reply.verdicts:
        more = ", ..." if one.nodes > EXAMPLES else ""
        yield f"  {_nodes(one.nodes)}: {', '.join(one.names[:EXAMPLES])}{more}"
        yield from (f"    {_said(verdict)}" for verdict in one.verdicts)
    yield from _left_out(reply, sum(one.nodes for one in reply.verdicts) + reply.nodes_feasible)
    if reply.nodes_total > EXAMPLES:
        yield "each node by itself: --all"


def _left_out(reply: WouldGoReply, told: int) -> Iterator[str]:
    if told < reply.nodes_total:
        yield f"  {_nodes(reply.nodes_total - told)} more, which the answer had no room for"


def _each(reply: WouldGoReply) -> list[str]:
    """A line for each node, those that fit first, the best before the others."""
    rows = [[score.node, f"{score.total:,}", _by_plugin(score)] for score in reply.scores]
    if not rows and reply.node:
        rows = [[reply.node, "-", "the only node that fits"]]
    rejected = sorted((name, one) for one in reply.verdicts for name in one.names)
    rows += [[name, "", _why(one)] for name, one in rejected]
    lines = tables.plain_lines(["NODE", "TOTAL", "WHAT PLUGINS SAY"], rows)
    return [*lines, *([f"{_nodes(reply.left_out)} more, which the answer had no room for"] if reply.left_out else [])]


def _by_plugin(score: NodeScore) -> str:
    return ", ".join(f"{plugin} {points}" for plugin, points in score.plugins.items())


def _why(one: NodesVerdict) -> str:
    return "; ".join(_said(verdict) for verdict in one.verdicts)


def _said(verdict: PluginVerdict) -> str:
    return f"{verdict.plugin}: {', '.join(verdict.reasons)}"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"
