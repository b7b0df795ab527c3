"""What the PostFilter plugins say together, as RunPostFilterPlugins has it."""

from typing import Any

import pytest

from podyard.framework import post_filtering
from podyard.framework import status as statuses
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PostFilterResult
from podyard.framework.profile import Enabled, resolve
from podyard.framework.status import Code, PluginError, Status
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto.decisions import Victim
from tests.unit.framework.builders import make_node, make_pod, snapshot_of

VICTIM = Victim(namespace="default", name="v", uid="uid-v", priority=0, pdb_violation=False)


class Says:
    """A PostFilter with one answer."""

    def __init__(self, name: str, status: Status, node: str | None = None, victims: tuple[Victim, ...] = ()) -> None:
        self.name = name
        self._answer = PostFilterResult(status=status, nominated_node=node, victims=victims)
        self.asked = 0

    def post_filter(self, *_: Any) -> PostFilterResult:
        self.asked += 1
        return self._answer


NO = Says("No", statuses.unschedulable("no"), "")
NOR = Says("Nor", statuses.unschedulable("nor"))
NEVER = Says("Never", statuses.unresolvable("never"), "x")
BROKEN = Says("Broken", statuses.error("boom"), "x")
YES = Says("Yes", statuses.SUCCESS, "a", (VICTIM,))


def cycle(*plugins: Any) -> CycleResult:
    profile = resolve("test", [Enabled(plugin=one) for one in (PrioritySort(), NodeResourcesFit(FitArgs()), *plugins)])
    return Cycle(profile, snapshot_of(make_node("a"))).run(make_pod("p", cpu="64"))


@pytest.mark.parametrize(
    ("plugins", "code", "message", "node"),
    [
        pytest.param([NO, NOR], Code.UNSCHEDULABLE, "no, nor", "", id="all say no"),
        pytest.param([NOR], Code.UNSCHEDULABLE, "nor", None, id="leaves the nomination"),
        pytest.param([NO, NEVER, YES], Code.UNRESOLVABLE, "never", "x", id="never ends it alone"),
        pytest.param([NO, BROKEN, YES], Code.ERROR, "boom", None, id="an error ends it alone"),
        pytest.param([NO, YES, BROKEN], Code.SUCCESS, "", "a", id="one that helps ends it"),
    ],
)
def test_answers_together(plugins: list[Says], code: Code, message: str, node: str | None) -> None:
    before = plugins[-1].asked
    result = cycle(*plugins)
    assert result.post_filter is not None
    assert (result.post_filter.code, result.post_filter.message, result.nominated_node) == (code, message, node)
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert result.message == (f"{text} {message}" if message else text)
    assert result.victims == ((VICTIM,) if code == Code.SUCCESS else ())
    assert result.error == ""
    assert result.diagnosis is not None
    assert result.diagnosis.unschedulable_plugins == ("NodeResourcesFit",)
    assert plugins[-1].asked - before == (1 if len(plugins) < 3 else 0)


def test_nobody_is_asked_without_plugins() -> None:
    result = cycle()
    assert (result.post_filter, result.nominated_node) == (None, None)


def test_a_plugin_that_raises_fails_the_attempt_under_its_name() -> None:
    class Raising:
        name = "Raising"

        def post_filter(self, *_: Any) -> PostFilterResult:
            raise KeyError("x")

    assert cycle(Raising()).error == "running PostFilter plugin \"Raising\": KeyError: 'x'"
    plugin: Any = Raising()
    with pytest.raises(PluginError):
        post_filtering.run((plugin,), CycleState(), make_pod("p"), snapshot_of(), None)  # pyright: ignore[reportArgumentType]
