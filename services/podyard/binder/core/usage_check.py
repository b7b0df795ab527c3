"""Does the node table agree with the live bindings? Checked all the time, a few nodes at a time.

Usage is kept by adding and taking away. Should it ever drift from the sum, nodes would be overcommitted or
left empty for good: so every node is compared with the view's bindings and our own writes once a round. Costs
about 10 µs a node.
"""

from collections.abc import Collection
from typing import Final

from podyard.binder.core.world import World
from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView, requested_by
from podyard.cluster.room import CPU, MEMORY, cell

STEP_S: Final = 1.0
ROUND_STEPS: Final = 30
"""All nodes are checked within so many steps."""

MOST_DETAILS: Final = 10


class UsageCheck:
    """Goes round the nodes. A round works on the names there were when it began."""

    def __init__(self, world: World) -> None:
        self.due_at = float("inf")
        """When the next step is due; never before `start`."""
        self._world = world
        self._names: list[str] = []
        self._share = 0

    def start(self, now: float) -> None:
        """The table is the truth from now on: begin to check."""
        self.due_at = now + STEP_S

    def run(self, now: float) -> list[str]:
        """One step; returns what does not agree, in words, at most 10 differences."""
        self.due_at = now + STEP_S
        if not self._names:
            self._names = list(self._world.view.nodes)
            self._share = -(-len(self._names) // ROUND_STEPS)
        names, self._names = self._names[: self._share], self._names[self._share :]
        return self.differences(names)

    def differences(self, names: list[str]) -> list[str]:
        """What does not agree on these nodes."""
        found: list[str] = []
        table = self._world.table
        if len(table) != len(self._world.view.nodes):
            found.append(f"{len(table)} nodes in the table, {len(self._world.view.nodes)} in the view")
        for name, live in self._world.live_on([name for name in names if name in self._world.view.nodes]).items():
            found += self._differences_of(name, live)
            if len(found) >= MOST_DETAILS:
                break
        return found[:MOST_DETAILS]

    def _differences_of(self, node: str, live: dict[str, PodView]) -> list[str]:
        table = self._world.table
        placed = table.pods_on(node)
        if live.keys() != placed.keys():
            return [f"{node}: {sorted(live.keys() ^ placed.keys())} are in the bindings or in the table, not in both"]
        row = table.row_of.get(node)
        if row is None:
            return [f"{node}: not in the table"]
        return [f"{node}: {what}" for what in _sums(live.values(), table, row)]


def _sums(live: Collection[PodView], table: NodeTable, row: int) -> list[str]:
    """Where books and columns of `row` are not the sums over `live`."""
    requests = requested_by(live)
    cpu = sum(pod.usage.nonzero_cpu_milli for pod in live)
    memory = sum(pod.usage.nonzero_memory_bytes for pod in live)
    room = table.room
    taken = room.taken(row)
    pairs = [("pods", len(live), int(table.pod_count[row]))]
    pairs += [(name, requests.get(name, 0), taken.requests.get(name, 0)) for name in requests | taken.requests]
    pairs += [
        ("nonzero cpu", cpu, taken.nonzero_cpu_milli),
        ("nonzero memory", memory, taken.nonzero_memory_bytes),
        ("nonzero cpu", cell(cpu), int(room.nonzero[CPU, row])),
        ("nonzero memory", cell(memory), int(room.nonzero[MEMORY, row])),
    ]
    pairs += [
        (name, cell(requests.get(name, 0)), int(room.requested[line, row])) for name, line in room.line_of.items()
    ]
    return [
        f"{what}: the bindings add up to {sum_}, the table has {there}" for what, sum_, there in pairs if sum_ != there
    ]
