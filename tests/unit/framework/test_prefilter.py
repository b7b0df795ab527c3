"""What the PreFilter plugins of a profile say together."""

from collections.abc import Iterable
from typing import cast

import pytest

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PreFilter, PreFilterResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.prefilter import PreFiltered, PreFiltering
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from tests.unit.framework.builders import make_node, make_pod, snapshot_of


class Says:
    """A PreFilter with one answer."""

    def __init__(self, name: str, status: Status = statuses.SUCCESS, nodes: Iterable[str] | None = None) -> None:
        self.name = name
        self._answer = PreFilterResult(status=status, node_names=None if nodes is None else frozenset(nodes))

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        return self._answer


NAMES, OTHERS = Says("Names", nodes=["a"]), Says("Others", nodes=["b"])
NO, NEVER = Says("No", statuses.unschedulable("no")), Says("Never", statuses.unresolvable("never"))


def run(*plugins: Says) -> PreFiltered:
    asked = cast("tuple[PreFilter, ...]", plugins)
    return PreFiltering(asked, CycleState()).run(make_pod("p"), snapshot_of(make_node("a"), make_node("b")))


@pytest.mark.parametrize(
    ("plugins", "rejectors"),
    [
        pytest.param((NAMES, NEVER), {"Never"}, id="unresolvable rejects alone"),
        pytest.param((NAMES, NO, NEVER), {"Never"}, id="also after another rejection"),
        pytest.param((NAMES, NO), {"No", "Names"}, id="unschedulable does not"),
        pytest.param((NO, NAMES, OTHERS), {"Names", "Others"}, id="no node left"),
    ],
)
def test_who_rejects(plugins: tuple[Says, ...], rejectors: set[str]) -> None:
    """Source: kube-scheduler v1.36.2, pkg/scheduler/framework/runtime/framework.go, RunPreFilterPlugins."""
    found = run(*plugins)
    assert not found.status.ok
    assert {found.status.plugin, *found.narrowed_by} - {""} == rejectors
