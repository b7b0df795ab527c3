"""DefaultBinder takes every pod, so that no later Bind plugin is asked."""

from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import Bind
from podyard.plugins.default_binder.plugin import DefaultBinder
from tests.unit.framework.builders import make_node, make_pod, snapshot_of


def test_it_lets_the_binder_bind() -> None:
    plugin = DefaultBinder()
    assert isinstance(plugin, Bind)
    assert plugin.bind(CycleState(), make_pod("p"), snapshot_of(make_node("a")), "a").ok
