"""A plugin of the descheduler that raises, or wants nonsense, at any point: its run ends under its name, the
others do their work."""

from typing import Any

import msgspec
import pytest

from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.framework import Evict, Verdict
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.core.state import CycleState
from tests.support.failing import FAULTS, NONSENSE
from tests.unit.descheduler.make import NoArgs, node, pod, policy, run


class Sweep:
    """Wants every pod that may go."""

    NAME = "Sweep"
    ARGS = NoArgs

    def __init__(self, args: Any, handle: Any) -> None:
        self.handle = handle

    @classmethod
    def faults(cls, args: Any) -> list[str]:
        return []

    def deschedule(self, nodes: Any) -> Any:
        for one in nodes:
            for candidate in self.handle.state.pods_on(one.metadata.name):
                if self.handle.evictor.filter(candidate).allowed and self.handle.evictor.pre_eviction_filter(candidate):
                    yield Evict(candidate)


def bad(point: str, amiss: Any) -> type:
    """A plugin that does amiss at one point: at once (`deschedule`, `balance`), or as its first or second
    wish."""

    class Bad(Sweep):
        NAME = "Bad"

        def deschedule(self, nodes: Any) -> Any:
            return amiss() if point == "deschedule" else self._wishes()

        def _wishes(self) -> Any:
            if point == "second":
                yield Evict(self.handle.state.pods["default", "bad"])
            yield amiss() if point in ("first", "second") else Evict(self.handle.state.pods["default", "bad"])

        if point == "balance":

            def balance(self, nodes: Any) -> Any:
                return amiss()

    return Bad


def state() -> CycleState:
    nodes = [node("n1"), node("n2")]
    return CycleState(nodes=nodes, pods=[pod("bad", "n1"), pod("good", "n1"), pod("other", "n2")])


def with_filter(chosen: Policy, point: str, plugin: str) -> Policy:
    """The policy, in which the plugin is asked whether pods may go."""
    (profile,) = chosen.profiles
    before = getattr(profile.plugins, point)
    enabled = msgspec.structs.replace(before, enabled=(*before.enabled, plugin))
    plugins = msgspec.structs.replace(profile.plugins, **{point: enabled})
    return msgspec.structs.replace(chosen, profiles=(msgspec.structs.replace(profile, plugins=plugins),))


POINTS = ("deschedule", "first", "second", "balance")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_that_raises_ends_its_own_run(point: str, fault: str) -> None:
    plugin = bad(point, FAULTS[fault])
    record, asked = run(policy(plugin, Sweep), state(), plugin, Sweep)
    (one,) = record.faults
    assert (one.plugin, one.point) == ("Bad", "Balance" if point == "balance" else "Deschedule")
    assert len(one.detail.encode()) < 10_000
    assert [step.plugin for step in record.steps if step.error] == ["Bad"]
    if fault == "ValueError":
        assert one.detail == "ValueError: out of order"
    assert {"good", "other"} <= {wanted.pod.metadata.name for wanted in asked if wanted.plugin == "Sweep"}


@pytest.mark.parametrize("answer", NONSENSE)
@pytest.mark.parametrize("point", POINTS)
def test_a_plugin_that_wants_nonsense_ends_its_own_run(point: str, answer: str) -> None:
    plugin = bad(point, lambda: NONSENSE[answer])
    record, asked = run(policy(plugin, Sweep), state(), plugin, Sweep)
    assert [one.plugin for one in record.faults] == ["Bad"]
    assert {"good", "other"} <= {wanted.pod.metadata.name for wanted in asked if wanted.plugin == "Sweep"}


@pytest.mark.parametrize("wish", [Evict("bad"), Evict(pod("bad"), 5), Evict(None)])
def test_a_wish_for_what_is_no_pod_ends_the_run(wish: Any) -> None:
    plugin = bad("first", lambda: wish)
    record, _ = run(policy(plugin), state(), plugin)
    assert record.faults[0].detail == "wants the eviction of Evict, not Evict(pod, reason)"


def test_a_plugin_whose_wishes_never_end_is_stopped() -> None:
    class Endless(Sweep):
        NAME = "Endless"

        def deschedule(self, nodes: Any) -> Any:
            while True:
                yield Evict(self.handle.state.pods["default", "other"])

    record, asked = run(policy(Endless, Sweep), state(), Endless, Sweep)
    assert record.faults[0].plugin == "Endless"
    assert len(asked) < 30
    assert asked[-1].plugin == "Sweep"


@pytest.mark.parametrize("what", [*FAULTS, *NONSENSE, "a Verdict of nothing"])
@pytest.mark.parametrize("point", ["filter", "pre_eviction_filter"])
def test_a_pod_about_which_a_filter_fails_stays(point: str, what: str) -> None:
    class Picky(Sweep):
        NAME = "Picky"

        def filter(self, one: Any) -> Any:
            return self._says(one) if point == "filter" else Verdict(True)

        def pre_eviction_filter(self, one: Any) -> Any:
            return self._says(one) if point == "pre_eviction_filter" else Verdict(True)

        def _says(self, one: Any) -> Any:
            if one.metadata.name != "bad":
                return Verdict(True)
            return FAULTS[what]() if what in FAULTS else NONSENSE.get(what, Verdict(None))  # pyright: ignore[reportArgumentType] - nonsense

    class Careful(Sweep):
        """Does as it is told by both filters."""

        def deschedule(self, nodes: Any) -> Any:
            evictor = self.handle.evictor
            for candidate in list(self.handle.state.pods.values()):
                if evictor.filter(candidate).allowed and evictor.pre_eviction_filter(candidate).allowed:
                    yield Evict(candidate)

    record, asked = run(with_filter(policy(Careful, Picky), point, "Picky"), state(), Careful, Picky)
    names = [wanted.pod.metadata.name for wanted in asked if wanted.plugin == "Sweep"]
    assert sorted(names) == ["good", "other"]
    assert {one.plugin for one in record.faults} == {"Picky"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plugin_that_cannot_be_made_is_an_error_of_the_policy(fault: str) -> None:
    class Unmade(Sweep):
        NAME = "Unmade"

        def __init__(self, args: Any, handle: Any) -> None:
            FAULTS[fault]()

    with pytest.raises(PolicyError, match='unable to initialize "Unmade" plugin'):
        run(policy(Unmade), state(), Unmade)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plugin_that_cannot_check_its_arguments_is_an_error_of_the_policy(fault: str) -> None:
    class Unchecked(Sweep):
        NAME = "Unchecked"

        @classmethod
        def faults(cls, args: Any) -> list[str]:
            return FAULTS[fault]()

    with pytest.raises(PolicyError, match="plugin Unchecked cannot check its arguments"):
        policy(Unchecked)
