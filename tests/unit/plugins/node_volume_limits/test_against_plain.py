"""NodeVolumeLimits says of each node what a plain reading of its rules says."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from podyard.framework.cycle_state import CycleState
from podyard.framework.status import PluginFault
from podyard.plugins.node_volume_limits.attachable_volumes import AttachableVolumes, OnNode
from podyard.plugins.node_volume_limits.plugin import TOO_MANY, NodeVolumeLimits
from podyard.plugins.node_volume_limits.resolving import Resolver
from tests.unit.plugins.node_volume_limits import plain
from tests.unit.plugins.volume_binding import storage_worlds
from tests.unit.plugins.volume_binding.storage_worlds import Answer, Asked, Manifest, World

PLUGIN = NodeVolumeLimits()
incoming = storage_worlds.pods().map(lambda pod: storage_worlds.named(pod, "pod"))


def wanted(world: World, pod: Manifest) -> tuple[Answer, dict[str, Answer]]:
    first = plain.pre_filter(world, pod)
    verdicts = {name: plain.verdict(world, pod, name, world.on(name)) for name in world.nodes}
    return first, verdicts if first is None else {}


def check(world: World, pod: Manifest) -> None:
    asked = Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)
    assert (asked.pre_filter, asked.one_by_one) == wanted(world, pod)
    if asked.failed:  # one such node fails the attempt
        assert any(answer is not None and answer[0] == "Error" for answer in asked.at_once.values())
    else:
        assert asked.at_once == asked.one_by_one


@st.composite
def crowded_worlds(draw: st.DrawFn) -> World:
    """Few nodes with low limits, and many volumes on them: pods, attachments and the limit meet at one volume
    more or less."""
    world = World()
    for name in storage_worlds.NODES[:2]:
        world.carry_out(("node", name, draw(storage_worlds.nodes(name))))
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": draw(st.integers(0, 5))}}
            for driver in ("csi.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io")
        ]
        world.carry_out(("object", "csinodes", ("", name), {"metadata": {"name": name}, "spec": {"drivers": drivers}}))
    for at, name in enumerate(storage_worlds.CLAIMS):
        volume = draw(storage_worlds.volumes(storage_worlds.VOLUMES[at]))
        if draw(st.booleans()):
            volume["spec"] = volume["spec"] | {"csi": {"driver": "csi.example.com", "volumeHandle": f"handle{at}"}}
        world.carry_out(("object", "persistentvolumes", ("", storage_worlds.VOLUMES[at]), volume))
        claim = draw(storage_worlds.claims(name))
        claim["spec"]["volumeName"] = storage_worlds.VOLUMES[at]
        world.carry_out(("object", "persistentvolumeclaims", ("default", name), claim))
    for name in ("a0", "a1", "a2"):
        attachment = draw(storage_worlds.attachments(name))
        attachment["spec"]["nodeName"] = draw(st.sampled_from(storage_worlds.NODES[:2]))
        world.carry_out(("object", "volumeattachments", ("", name), attachment))
    own = storage_worlds.claims(storage_worlds.OWNED)
    if draw(storage_worlds.maybe):
        world.carry_out(("object", "persistentvolumeclaims", ("default", storage_worlds.OWNED), draw(own)))
    for number in range(draw(st.integers(0, 4))):
        kind = draw(storage_worlds.pods(ephemeral=False))
        world.carry_out(("pod", f"p{number}", kind, draw(st.sampled_from(storage_worlds.NODES[:2]))))
    return world


@storage_worlds.LARGE
@given(crowded_worlds(), incoming)
def test_nodes_that_are_nearly_full(world: World, pod: Manifest) -> None:
    check(world, pod)


@storage_worlds.LARGE
@given(storage_worlds.worlds(), incoming)
def test_a_cluster(world: World, pod: Manifest) -> None:
    check(world, pod)


@settings(storage_worlds.LARGE, max_examples=50)
@given(storage_worlds.worlds(), incoming, st.lists(storage_worlds.steps(), min_size=1, max_size=8))
def test_after_any_sequence_of_changes(world: World, pod: Manifest, changes: list[tuple[Any, ...]]) -> None:
    view = storage_worlds.view(pod)
    Asked(PLUGIN, view, world.snapshot)  # the index is there before the changes
    for change in changes:
        token, before = PLUGIN.filter_token(view, world.snapshot), wanted(world, pod)
        world.carry_out(change)
        after = wanted(world, pod)
        if PLUGIN.filter_token(view, world.snapshot) == token and change[0] == "object":
            assert before == after
    check(world, pod)
    fresh = world.again()
    kept, made = (one.snapshot.nodes.index(AttachableVolumes).most(one.snapshot) for one in (world, fresh))
    for name, row in fresh.snapshot.nodes.row_of.items():
        assert kept[world.snapshot.nodes.row_of[name]] == made[row]


def on_nodes(world: World) -> dict[str, OnNode | str]:
    """What the index says is on each node, or why it cannot."""
    nodes, found = world.snapshot.nodes, dict[str, OnNode | str]()
    for name, row in nodes.row_of.items():
        try:
            found[name] = nodes.index(AttachableVolumes).on_node(row, Resolver(world.snapshot), world.snapshot)
        except PluginFault as fault:
            found[name] = str(fault)
    return found


@settings(storage_worlds.LARGE, max_examples=100)
@given(crowded_worlds(), st.lists(storage_worlds.steps(), min_size=1, max_size=8))
def test_what_is_on_a_node_is_kept_until_it_changes(world: World, changes: list[tuple[Any, ...]]) -> None:
    for change in changes:
        on_nodes(world)
        world.carry_out(change)
        assert on_nodes(world) == on_nodes(world.again())


def test_a_node_has_not_what_was_attached_to_the_one_that_had_its_row() -> None:
    world, volume, first, second = World(), storage_worlds.VOLUMES[0], *storage_worlds.NODES[:2]
    source = {"csi": {"driver": "csi.example.com", "volumeHandle": "handle"}}
    world.carry_out(("object", "persistentvolumes", ("", volume), {"metadata": {"name": volume}, "spec": source}))
    attached = {"attacher": "csi.example.com", "nodeName": first, "source": {"persistentVolumeName": volume}}
    world.carry_out(("object", "volumeattachments", ("", "a0"), {"metadata": {"name": "a0"}, "spec": attached}))
    world.carry_out(("node", first, {"metadata": {"name": first}}))
    row = world.snapshot.nodes.row_of[first]
    assert on_nodes(world) == {first: OnNode(frozenset(), {"csi.example.com": 1})}
    world.carry_out(("node", first, None))
    world.carry_out(("node", second, {"metadata": {"name": second}}))
    assert world.snapshot.nodes.row_of == {second: row}
    assert on_nodes(world) == {second: OnNode(frozenset(), {})}


@settings(storage_worlds.LARGE, max_examples=100)
@given(st.one_of(storage_worlds.worlds(), crowded_worlds()), incoming, st.data())
def test_a_trial_with_pods_more_and_less(world: World, pod: Manifest, data: st.DataObject) -> None:
    view, snapshot = storage_worlds.view(pod), world.snapshot
    assume(PLUGIN.pre_filter(CycleState(), view, snapshot).status.ok)
    on_nodes(world)  # the trial must not take what is kept of the node as it is
    name = data.draw(st.sampled_from(tuple(world.nodes)))
    mates = {uid: mate for uid, (mate, where) in world.placed.items() if where == name}
    row, state = snapshot.nodes.row_of[name], CycleState()
    with snapshot.nodes.trial(row) as trial:
        for uid in data.draw(st.sets(st.sampled_from(tuple(mates)))) if mates else ():
            trial.remove(uid)
            del mates[uid]
        more = storage_worlds.named(data.draw(storage_worlds.pods(other_space=True)), "more")
        trial.add(storage_worlds.view(more))
        try:
            code = PLUGIN.filter_one(state, view, snapshot, row)
            got = storage_worlds.spelled(PLUGIN.verdict(state, code)) if code else None
        except PluginFault as fault:
            got = "Error", (str(fault),)
        assert got == plain.verdict(world, pod, name, [*mates.values(), more])
    check(world, pod)


def one_node(limit: int, *names: str) -> World:
    """Node n0 with a driver of so many volumes, and claims whose volumes that driver is to make."""
    world = World()
    world.carry_out(("node", "n0", {"metadata": {"name": "n0"}, "spec": {}, "status": {}}))
    driver = {"name": "csi.example.com", "nodeID": "n0", "allocatable": {"count": limit}}
    world.carry_out(("object", "csinodes", ("", "n0"), {"metadata": {"name": "n0"}, "spec": {"drivers": [driver]}}))
    made = {"metadata": {"name": "made"}, "provisioner": "csi.example.com"}
    world.carry_out(("object", "storageclasses", ("", "made"), made))
    for name in names:
        claim = {"metadata": {"name": name, "namespace": "default"}, "spec": {"storageClassName": "made"}}
        world.carry_out(("object", "persistentvolumeclaims", ("default", name), claim))
    return world


def test_a_placed_pod_with_a_claim_that_is_not_its_own_fails_the_attempt_however_much_room_there_is() -> None:
    world = one_node(99, "c0", "p0-scratch")
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    world.carry_out(("pod", "p0", {"metadata": {"namespace": "default"}, "spec": {"volumes": [scratch]}}, "n0"))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c0"}}
    pod = {"metadata": {"namespace": "default", "name": "pod", "uid": "pod"}, "spec": {"volumes": [volume]}}
    asked = Asked(PLUGIN, storage_worlds.view(pod), world.snapshot)
    why = "PVC default/p0-scratch was not created for pod default/p0 (pod is not owner)"
    assert asked.one_by_one == asked.at_once == {"n0": ("Error", (why,))}


def test_in_a_trial_only_the_volumes_of_the_trials_pods_are_used() -> None:
    world = one_node(1, "c0", "c1")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}} for name in ("c0", "c1")]
    pods: list[Manifest] = [{"metadata": {"namespace": "default"}, "spec": {"volumes": [one]}} for one in volumes]
    world.carry_out(("pod", "p0", pods[0], "n0"))
    view, nodes = storage_worlds.view(storage_worlds.named(pods[1], "pod")), world.snapshot.nodes
    row = nodes.row_of["n0"]

    def code() -> int:
        return PLUGIN.filter_one(CycleState(), view, world.snapshot, row)

    assert code() == TOO_MANY
    with nodes.trial(row) as trial:
        assert code() == TOO_MANY
        removed = trial.remove(*nodes.pods_on("n0"))
        assert code() == 0
        with nodes.trial(row) as within:
            within.add(removed)
            assert code() == TOO_MANY
        assert code() == 0
    assert code() == TOO_MANY
