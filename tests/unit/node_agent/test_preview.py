"""Whom a node would evict: what a preview says is what rounds then do, and asking changes nothing."""

from random import Random

import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from podyard.node_agent.core.messages import Asked
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.objects.pod import Pod
from podyard.proto.agents_api import PreviewReply, PreviewRequest
from podyard.proto.signals import Failing, NodeSignals, PodUsage, SignalValue, Unused
from tests.unit.node_agent.make import GIBIBYTE, MEBIBYTE, Playing, agent, general, node, pod, signals, view

CRITICAL = 2_000_000_000
SLOW = {"podyard.io/stop-delay": "10m"}
"""Takes all the time that it is given to end."""


def ask(playing: Playing, now: float, limit: int = 110, **given: str) -> PreviewReply:
    (effect,) = answer(playing, now, limit, **given)
    assert isinstance(effect, effects.Reply)
    assert effect.ticket == 7
    return effect.reply


def answer(playing: Playing, now: float, limit: int = 110, name: str = "n1", **given: str) -> list[effects.Effect]:
    """What is said of the node with signals that are named with `_` for `.`."""
    texts = {signal.replace("_", "."): text for signal, text in given.items()}
    return playing.step(Asked(7, PreviewRequest(node=name, signals=texts, limit=limit)), now)


def used(name: str, gibibytes: int) -> PodUsage:
    return PodUsage(namespace="default", name=name, memory_bytes=gibibytes * GIBIBYTE)


def played(*pods: Pod, **config: object) -> Playing:
    playing = agent(**config) if config else agent(hard={"memory.available": "100Mi"})  # type: ignore[arg-type]
    playing.node_seen(node(capacity={"memory": "8Gi"}), (), 0.0)
    for one in pods:
        playing.pod_seen(view(one), 0.0, 0.0)
    playing.tick(1.0)
    return playing


def names(reply: PreviewReply) -> list[tuple[str, str]]:
    return [(one.name, one.by) for one in reply.pods]


def test_each_key_of_the_ranking_is_named():
    playing = played(
        pod("last", requests={"memory": "2Gi"}, priority=9),
        pod("within", requests={"memory": "2Gi"}),
        pod("over"),
        pod("more"),
        pod("z-more"),
        pod("first", priority=-1),
    )
    usage = [used(name, size) for name, size in (("over", 1), ("more", 2), ("z-more", 2), ("first", 1))]
    playing.observe(signals(4 * GIBIBYTE, *usage, at=10.0), 10.0)
    reply = ask(playing, 20.0, memory_available="50Mi")
    assert names(reply) == [
        ("first", "priority"),
        ("more", "name"),
        ("z-more", "usage"),
        ("over", "request"),
        ("within", "priority"),
        ("last", "last"),
    ]
    assert [one.at for one in reply.pods] == [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]
    more = reply.pods[1]
    assert (more.used, more.request, more.over, more.signal) == (2 * GIBIBYTE, 0, 2 * GIBIBYTE, "memory.available")
    assert more.message.startswith("The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ")


def test_who_is_spared_and_why():
    static, mirror = {"kubernetes.io/config.source": "file"}, {"kubernetes.io/config.mirror": "x"}
    playing = played(
        pod("static", annotations=static),
        pod("mirror", annotations=mirror),
        pod("critical", priority=CRITICAL),
        pod("web"),
    )
    reply = ask(playing, 20.0, memory_available="0")
    assert names(reply) == [("web", "last")]
    assert {one.name: one.why for one in reply.spared} == {
        "static": "static",
        "mirror": "mirror of a static pod",
        "critical": "critical: priority 2000000000",
    }


def soft(**more: object) -> Playing:
    thresholds = parse_thresholds(
        hard={"memory.available": "100Mi", "nodefs.available": "10%"},
        soft={"memory.available": "500Mi"},
        soft_grace={"memory.available": "30s"},
        enforce_allocatable=(),
    )
    playing = Playing(Selection(), general(EvictionConfig(thresholds=thresholds, max_pod_grace_s=5)), NodeRhythm())
    playing.node_seen(node(**more), (), 0.0)
    playing.pod_seen(view(pod("a")), 0.0, 0.0)
    playing.tick(1.0)
    return playing


def test_a_soft_threshold_waits_and_says_until_when():
    playing = soft()
    playing.observe(signals(300 * MEBIBYTE, used("a", 1), at=100.0), 100.0)
    reply = ask(playing, 110.0)
    states = {(one.signal, one.value): (one.state, one.until) for one in reply.thresholds}
    assert states["memory.available", "500Mi"] == ("waits", 130.0)
    assert states["memory.available", "100Mi"] == ("notMet", 0.0)
    assert states["nodefs.available", "10%"] == ("notObserved", 0.0)
    assert reply.conditions == ("MemoryPressure",)
    assert [(one.name, one.at, one.grace_s) for one in reply.pods] == [("a", 130.0, 5)]


def test_what_would_be_collected_before_a_pod_goes():
    reply = ask(soft(), 10.0, nodefs_available="5% of 100Gi")
    assert [(one.what, one.resource) for one in reply.collections] == [
        ("containers", "ephemeral-storage"),
        ("images", "ephemeral-storage"),
    ]
    (threshold,) = (one for one in reply.thresholds if one.signal == "nodefs.available")
    assert (threshold.state, threshold.bound) == ("acts", 10_737_418_400), "a tenth of 32 bits"


def disk(left: int, **unused: Unused) -> NodeSignals:
    """So many GiB left, of 100; a standing word."""
    value = SignalValue(available=left * GIBIBYTE, capacity=100 * GIBIBYTE)
    return NodeSignals(node="n1", signals={"nodefs.available": value}, standing=True, **unused)


def test_what_a_collection_would_free_may_spare_every_pod_and_nothing_is_collected():
    playing = played(pod("a"), hard={"nodefs.available": "10Gi"})
    playing.observe(
        disk(50, images=Unused(disk_bytes=4 * GIBIBYTE), dead_containers=Unused(disk_bytes=6 * GIBIBYTE)), 5.0
    )
    reply = ask(playing, 6.0, nodefs_available="1Gi of 100Gi")
    assert (reply.pods, len(reply.collections)) == ((), 2)
    node = playing.nodes.get("n1")
    assert node is not None
    node.synchronize(playing.pods.active_on("n1"), 7.0)
    usage = node.usage(7.0)
    assert usage is not None
    assert usage.signals["nodefs.available"].available == 50 * GIBIBYTE


def test_what_was_collected_frees_nothing_more():
    playing = played(pod("a"), hard={"nodefs.available": "10Gi"})
    unused = Unused(disk_bytes=20 * GIBIBYTE)
    playing.observe(disk(1, images=unused, dead_containers=unused), 5.0)
    assert names(ask(playing, 6.0, nodefs_available="1Gi of 100Gi")) == [("a", "last")]


def test_the_next_one_is_found_behind_more_critical_pods_than_the_manager_names():
    playing = played(*(pod(f"c{number}", priority=CRITICAL) for number in range(12)), pod("a"), pod("b"))
    usage = [used(f"c{number}", 7) for number in range(12)]
    playing.observe(signals(4 * GIBIBYTE, *usage, at=10.0), 10.0)
    assert names(ask(playing, 20.0, memory_available="1Mi")) == [("a", "name"), ("b", "last")]


def test_beyond_the_limit_pods_are_counted():
    playing = played(*(pod(f"p{number}") for number in range(5)), pod("critical", priority=CRITICAL))
    reply = ask(playing, 10.0, limit=2, memory_available="1Mi")
    assert ([one.name for one in reply.pods], reply.left_out) == (["p0", "p1"], 3)
    assert ask(playing, 10.0, limit=5, memory_available="1Mi").left_out == 0


def test_nobody_goes_where_nothing_is_met():
    reply = ask(played(pod()), 10.0, memory_available="4Gi")
    assert (reply.pods, reply.left_out, reply.collections) == ((), 0, ())


@pytest.mark.parametrize("what", ["layout", "reading", "kill"])
def test_a_round_that_fails_ends_the_preview_and_is_told(what):
    playing = played(pod("a"))
    playing.observe(NodeSignals(node="n1", failing=(Failing(what=what, why="no device"),)), 10.0)
    reply = ask(playing, 20.0, memory_available="1Mi")
    assert reply.pods == ()
    assert ["no device" in fault for fault in reply.faults] == [True]


def test_what_cannot_be_asked_is_refused_with_all_faults_in_the_reference_s_words():
    (effect,) = answer(
        played(pod()), 10.0, memory_free="1Mi", memory_available="lots", nodefs_available="-1Gi", pid_available="5%"
    )
    assert isinstance(effect, effects.Declined)
    told = effect.reason.split("; ")
    assert told[0] == "signal[memory.free]: unsupported eviction signal memory.free"
    assert told[1].startswith("signal[memory.available]: quantities must match the regular expression")
    assert told[2].startswith("signal[nodefs.available]: nodefs.available: -1Gi must be from 0 to ")
    assert told[3] == "signal[pid.available]: nobody has said the capacity: write pid.available='5% of CAPACITY'"


def test_a_share_is_of_what_was_observed_or_of_what_the_nodes_object_says():
    playing = played(pod())
    (threshold,) = (
        one for one in ask(playing, 10.0, memory_available="50%").thresholds if one.signal == "memory.available"
    )
    assert (threshold.available, threshold.capacity) == (4 * GIBIBYTE, 8 * GIBIBYTE)


def test_asking_at_the_moment_of_an_observation_takes_it_for_a_fresh_one():
    playing = played(pod())
    playing.observe(signals(4 * GIBIBYTE, at=10.0), 10.0)
    assert names(ask(playing, 10.0, memory_available="1Mi")) == [("web", "last")]


def test_a_pressure_that_was_only_asked_about_is_none():
    playing = played(pod())
    assert ask(playing, 10.0, memory_available="1Mi").conditions == ("MemoryPressure",)
    found = playing.observe(signals(4 * GIBIBYTE, at=11.0), 11.0)
    assert [one for one in found if isinstance(one, effects.PutNodeStatus | effects.PodEvicted)] == []
    assert ask(playing, 12.0).conditions == ()


def test_of_a_node_of_another_agent_nothing_is_said():
    assert answer(played(pod()), 10.0, name="elsewhere") == [effects.NotPlayed(7)]


SEEDS = range(30)
QUIET_S = 50.0
"""Longer than any wait: what has not gone by then does not go."""


class Walk:
    """An agent whose node is asked, and then goes through what it was asked about."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        thresholds = parse_thresholds(
            hard={"memory.available": "100", "nodefs.available": "100"},
            soft={"memory.available": "300", "nodefs.available": "200", "pid.available": "100"},
            soft_grace={"memory.available": "15s", "nodefs.available": "10s", "pid.available": "5s"},
            min_reclaim={"memory.available": "50"},
            enforce_allocatable=(),
        )
        config = EvictionConfig(thresholds=thresholds, max_pod_grace_s=40)
        self.playing = Playing(Selection(), general(config), NodeRhythm())
        self.playing.node_seen(node(), (), 0.0)
        self.now = 2.0
        self.usage: list[PodUsage] = []
        for number in range(self.draw.randrange(2, 9)):
            self.pod(f"p{number}")
        self.playing.tick(1.0)

    def pod(self, name: str) -> None:
        request, limit = self.draw.choice([0, 50, 150]), self.draw.choice([0, 0, 0, 190])
        one = pod(
            name,
            requests={"memory": str(request)} if request else {},
            limits={"ephemeral-storage": str(limit)} if limit else {},
            priority=self.draw.choice([-1, 0, 0, 5, CRITICAL]),
            grace_s=self.draw.choice([5, 30, 120]),
            annotations=SLOW,
        )
        self.playing.pod_seen(view(one), 0.0, 0.0)
        memory, disk, processes = self.draw.randrange(200), self.draw.randrange(200), self.draw.randrange(50)
        self.usage.append(
            PodUsage(namespace="default", name=name, memory_bytes=memory, disk_bytes=disk, processes=processes)
        )

    def observe(self, left: dict[str, int]) -> list[effects.Effect]:
        """A second later, what is left is measured anew."""
        self.now += 1.0
        found = self.playing.tick(self.now)
        said = {name: SignalValue(available=amount, capacity=1000) for name, amount in left.items()}
        return found + self.playing.observe(
            NodeSignals(node="n1", signals=said, pods=tuple(self.usage), at=self.now), self.now
        )

    def level(self, *least: int) -> dict[str, int]:
        return {
            name: self.draw.choice([*least, 160, 220, 310, 900])
            for name in ("memory.available", "nodefs.available", "pid.available")
        }

    def calm(self) -> None:
        """Until no round waits for a pod any more."""
        while (played := self.playing.nodes.get("n1")) is not None and played.cleanup is not None:
            self.observe({})


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_go_in_the_order_and_at_the_time_that_the_preview_says(seed: int):
    walk = Walk(seed)
    for _ in range(walk.draw.randrange(1, 12)):
        walk.observe(walk.level())
    walk.calm()
    left = walk.level(20, 99)
    given = {name.replace(".", "_"): f"{amount} of 1000" for name, amount in left.items()}
    expected = ask(walk.playing, walk.now + 1.0, **given)
    assert ask(walk.playing, walk.now + 1.0, **given) == expected, "asking changes nothing"
    went: list[tuple[float, str]] = []
    last = max((one.at for one in expected.pods), default=walk.now)
    while walk.now < last + QUIET_S:
        went += [
            (one.at, one.name) for one in walk.observe(left) if isinstance(one, effects.PodEvicted) and not one.sooner
        ]
    assert [(one.at, one.name) for one in expected.pods] == went
