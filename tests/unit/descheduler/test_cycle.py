"""The order of a cycle, and what its plugins see of each other
(docs/rules.md, a-cycle-sees-its-own-evictions)."""

import pytest

from podyard.descheduler.core import cycle, loading
from podyard.descheduler.core.evictions import EvictionDone
from podyard.descheduler.core.framework import Answer, Evict, PluginError
from podyard.descheduler.core.state import CycleState
from tests.unit.descheduler.make import NOW, NoArgs, known, node, pod, policy, run


class _Plugin:
    """Wants every pod that its filters let go."""

    ARGS = NoArgs

    def __init__(self, args, handle) -> None:
        del args
        self._handle = handle

    @classmethod
    def faults(cls, args) -> list[str]:
        del args
        return []

    def _all(self, nodes):
        for one in nodes:
            for candidate in self._handle.state.pods_on(one.metadata.name):
                if self._handle.evictor.filter(candidate).allowed:
                    answer = yield Evict(candidate)
                    if answer is Answer.TOTAL_LIMIT:
                        return


class Sweep(_Plugin):
    NAME = "Sweep"

    def deschedule(self, nodes):
        return self._all(nodes)


class Spread(_Plugin):
    NAME = "Spread"

    def balance(self, nodes):
        return self._all(nodes)


class Broken(_Plugin):
    NAME = "Broken"

    def deschedule(self, nodes):
        del nodes
        yield Evict(self._handle.state.pods["default", "web"])
        raise PluginError("no metrics")


TWO = [node("n1"), node("n2")]


def test_all_deschedule_plugins_run_before_all_balance_plugins():
    text = """
apiVersion: descheduler/v1alpha2
profiles:
- {name: one, pluginConfig: [{name: Sweep}, {name: Spread}],
   plugins: {balance: {enabled: [Spread]}, deschedule: {enabled: [Sweep]}}}
- {name: two, pluginConfig: [{name: Sweep}, {name: Spread}],
   plugins: {balance: {enabled: [Spread]}, deschedule: {enabled: [Sweep]}}}
"""
    plugins = (Sweep, Spread)
    record, _ = run(loading.load(text, known(*plugins), {}), CycleState(nodes=TWO, pods=()), *plugins)
    assert [(step.profile, step.extension_point, step.plugin) for step in record.steps] == [
        ("one", "Deschedule", "Sweep"), ("two", "Deschedule", "Sweep"),
        ("one", "Balance", "Spread"), ("two", "Balance", "Spread"),
    ]  # fmt: skip


def test_a_later_plugin_knows_what_an_earlier_one_has_evicted():
    chosen = policy(Sweep, Spread)
    record, asked = run(chosen, CycleState(nodes=TWO, pods=[pod()]), Sweep, Spread)
    assert len(asked) == 1, "it is terminating by then"
    assert [len(step.attempts) for step in record.steps] == [1, 0]


def test_in_a_dry_run_an_evicted_pod_is_gone():
    state = CycleState(nodes=TWO, pods=[pod("a"), pod("b")])
    run(policy(Sweep), state, Sweep, answer=lambda _: EvictionDone(gone=True))
    assert state.pods_on("n1") == []
    assert state.replicas("rs-1") == 0


@pytest.mark.parametrize("gone", [True, False])
def test_a_pod_that_is_on_no_node_may_go_too(gone: bool):
    class Unplaced(_Plugin):
        NAME = "Unplaced"

        def deschedule(self, nodes):
            del nodes
            yield Evict(self._handle.state.pods["default", "web"])

    state = CycleState(nodes=TWO, pods=[pod(node="")])
    record, evictions = run(policy(Unplaced), state, Unplaced, answer=lambda _: EvictionDone(gone=gone))
    assert record.evicted == len(evictions) == 1
    assert [one.metadata.deletion_timestamp is None for one in state.pods.values()] == ([] if gone else [False])


def test_limits_are_shared_by_the_whole_cycle():
    chosen = policy(Sweep, Spread, maxNoOfPodsToEvictTotal=1)
    record, asked = run(chosen, CycleState(nodes=TWO, pods=[pod("a"), pod("b", "n2")]), Sweep, Spread)
    assert len(asked) == 1
    assert [[one.answer for one in step.attempts] for step in record.steps] == [
        [Answer.EVICTED, Answer.TOTAL_LIMIT], [Answer.TOTAL_LIMIT]
    ], "the next plugin tries, and is told"  # fmt: skip


def test_a_limit_of_0_allows_nothing():
    _, asked = run(policy(Sweep, maxNoOfPodsToEvictPerNamespace=0), CycleState(nodes=TWO, pods=[pod()]), Sweep)
    assert asked == []


def test_with_fewer_than_two_ready_nodes_nothing_runs():
    record, asked = run(policy(Sweep), CycleState(nodes=[node("n1"), node("n2", ready="False")], pods=[pod()]), Sweep)
    assert asked == []
    assert record.steps == ()
    assert record.skipped == "1 ready nodes are selected, at least 2 are needed"


def test_only_nodes_that_the_policy_selects():
    nodes = [node("n1"), node("n2"), node("n3")]
    state = CycleState(nodes=nodes, pods=[pod("a", "n1"), pod("b", "n3")])
    chosen = policy(Sweep, nodeSelector="kubernetes.io/hostname in (n2, n3)")
    _, asked = run(chosen, state, Sweep)
    assert [one.pod.metadata.name for one in asked] == ["b"]


def test_a_plugin_that_fails_keeps_what_it_did_and_others_go_on():
    chosen = policy(Broken, Sweep)
    record, asked = run(chosen, CycleState(nodes=TWO, pods=[pod("web"), pod("web2")]), Broken, Sweep)
    assert [(step.plugin, step.error, len(step.attempts)) for step in record.steps] == [
        ("Broken", "no metrics", 1), ("Sweep", "", 1)
    ]  # fmt: skip
    assert len(asked) == 2


def test_the_grace_period_of_the_policy_goes_with_each_eviction():
    _, asked = run(policy(Sweep, gracePeriodSeconds=7), CycleState(nodes=TWO, pods=[pod()]), Sweep)
    assert [(one.grace_period_s, one.profile, one.plugin, one.reason) for one in asked] == [(7, "p", "Sweep", "Sweep")]


def test_a_policy_without_profiles_does_nothing():
    record, asked = run(loading.load("", known(), {}), CycleState(nodes=TWO, pods=[pod()]))
    assert (record.steps, asked) == ((), [])


def test_a_step_is_timed_from_its_beginning_over_its_evictions_to_its_end():
    clock = iter([10.0, 17.0, 20.0, 20.5])
    state, chosen = CycleState(nodes=TWO, pods=[pod()]), policy(Sweep, Spread)
    running = cycle.run(chosen, known(Sweep, Spread), state, NOW, timer=lambda: next(clock))
    next(running)
    with pytest.raises(StopIteration) as ended:
        running.send(EvictionDone())
    assert [step.took_s for step in ended.value.value.steps] == [7.0, 0.5]
