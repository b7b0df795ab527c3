"""Two pods of one scheduler never take one volume, however late the objects come."""

from typing import Any

import pytest

from podyard.cluster.pods import PodView
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import FilterToken, Signed
from podyard.framework.profile import Profile
from podyard.framework.volume_choices import CHOSEN
from podyard.objects.meta import ObjectReference
from podyard.plugins.defaults import default_profile
from podyard.plugins.volume_binding.books import Promises, VolumeBooks
from podyard.proto.placement import BoundPod, VolumeChoice
from tests.support import objects
from tests.unit.plugins.volume_binding import storage_worlds
from tests.unit.plugins.volume_binding.storage_worlds import HOST, World

PROFILE: Profile = default_profile()
STATIC = {
    "metadata": {"name": "static"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
MADE = STATIC | {"metadata": {"name": "made"}, "provisioner": "csi.example.com"}


def volume(name: str, node: str = "", claim: dict[str, Any] | None = None, size: str = "1Gi") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "static",
        "local": {"path": "/x"},
    }
    if node:
        expression = {"key": HOST, "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim:
        spec["claimRef"] = claim
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"phase": "Available"}}


def claim(name: str, storage_class: str = "static") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def pod(name: str, *claims: str, **more: Any) -> dict[str, Any]:
    volumes = [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": one}} for at, one in enumerate(claims)]
    return objects.pod(name, uid=name, volumes=volumes, **{"containers": [], **more})


class Scheduler:
    """A world, and cycles over it as a scheduler runs them."""

    def __init__(self, *volumes: dict[str, Any], nodes: tuple[str, ...] = ("n0",)) -> None:
        self.world = World()
        for name in nodes:
            self.world.carry_out(("node", name, objects.node(name)))
        for one in (STATIC, MADE):
            self.put("storageclasses", one)
        for one in volumes:
            self.put("persistentvolumes", one)
        self.cycle = Cycle(PROFILE, self.world.snapshot)

    def put(self, resource: str, manifest: dict[str, Any]) -> None:
        meta = manifest["metadata"]
        self.world.carry_out(("object", resource, (meta.get("namespace", ""), meta["name"]), manifest))

    def place(self, view: PodView, node: str) -> None:
        bound = BoundPod(namespace="default", name=view.name, uid=view.uid, node=node, usage=view.usage)
        self.world.snapshot.nodes.place(view.with_placement(bound, None))

    def attempt(self, manifest: dict[str, Any]) -> tuple[PodView, CycleResult]:
        view = storage_worlds.view(manifest)
        result = self.cycle.run(view)
        if result.node:
            self.place(view, result.node)
            assert self.cycle.confirm(view, result)
        return view, result

    def chosen(self, manifest: dict[str, Any]) -> dict[str, str]:
        """What a pod that finds a node gets, by claim."""
        _, result = self.attempt(manifest)
        assert result.state is not None, result.message
        told: tuple[VolumeChoice, ...] = result.state.find(CHOSEN) or ()
        return {one.claim: one.volume for one in told}

    def books(self) -> VolumeBooks:
        return self.world.snapshot.nodes.index(VolumeBooks)


def test_the_next_pod_gets_the_next_volume_and_the_third_none() -> None:
    scheduler = Scheduler(volume("b"), volume("a"))
    for name in ("c0", "c1", "c2"):
        scheduler.put("persistentvolumeclaims", claim(name))
    assert scheduler.chosen(pod("p0", "c0")) == {"c0": "a"}
    assert scheduler.chosen(pod("p1", "c1")) == {"c1": "b"}
    _, third = scheduler.attempt(pod("p2", "c2"))
    assert "1 node(s) didn't find available persistent volumes to bind" in third.message


def test_what_is_not_reserved_any_more_is_free_again() -> None:
    scheduler = Scheduler(volume("a"))
    for name in ("c0", "c1"):
        scheduler.put("persistentvolumeclaims", claim(name))
    view, result = scheduler.attempt(pod("p0", "c0"))
    assert not scheduler.attempt(pod("p1", "c1"))[1].node
    scheduler.cycle.unreserve(view, result.state, result.node)
    scheduler.world.snapshot.nodes.remove(view.uid)
    assert scheduler.chosen(pod("p1", "c1")) == {"c1": "a"}


def test_the_promise_lasts_as_long_as_the_pod_is_placed_whatever_becomes_of_its_object() -> None:
    scheduler = Scheduler(volume("a"))
    for name in ("c0", "c1"):
        scheduler.put("persistentvolumeclaims", claim(name))
    view, _ = scheduler.attempt(pod("p0", "c0"))
    labelled = pod("p0", "c0")
    labelled["metadata"]["labels"] = {"app": "x"}
    scheduler.place(storage_worlds.view(labelled), "n0")  # another version of the pod
    scheduler.put("persistentvolumes", volume("a", size="2Gi"))  # another version of the volume, still without claim
    assert not scheduler.attempt(pod("p1", "c1"))[1].node
    scheduler.world.snapshot.nodes.remove(view.uid)
    assert scheduler.chosen(pod("p1", "c1")) == {"c1": "a"}


def test_a_promise_to_a_pod_on_a_node_that_is_gone_ends_with_the_pod() -> None:
    scheduler = Scheduler(volume("a"), nodes=("n0", "n1"))
    for name in ("c0", "c1"):
        scheduler.put("persistentvolumeclaims", claim(name))
    view, result = scheduler.attempt(pod("p0", "c0"))
    scheduler.world.carry_out(("node", result.node, None))
    assert not scheduler.attempt(pod("p1", "c1"))[1].node
    scheduler.world.snapshot.nodes.remove(view.uid)
    held = scheduler.world.snapshot.objects("persistentvolumes")["", "a"]
    assert scheduler.books().claim_of(held) is None


def test_the_objects_own_claim_counts_more_than_a_promise() -> None:
    scheduler = Scheduler(volume("a"))
    scheduler.put("persistentvolumeclaims", claim("c0"))
    scheduler.attempt(pod("p0", "c0"))
    other = {"namespace": "default", "name": "other", "uid": "uid-other"}
    scheduler.put("persistentvolumes", volume("a", claim=other))
    held = scheduler.world.snapshot.objects("persistentvolumes")["", "a"]
    reference = scheduler.books().claim_of(held)
    assert reference is not None
    assert reference.name == "other"


@pytest.mark.parametrize("how", ["claimed and wiped", "made again", "gone and made again"])
def test_a_volume_that_is_free_again_is_promised_to_nobody_though_its_pod_still_stands(how: str) -> None:
    scheduler = Scheduler(volume("a"))
    for name in ("c0", "c1"):
        scheduler.put("persistentvolumeclaims", claim(name))
    scheduler.attempt(pod("p0", "c0"))
    again = volume("a")
    if how == "claimed and wiped":
        scheduler.put("persistentvolumes", volume("a", claim={"namespace": "default", "name": "c0", "uid": "uid-c0"}))
        assert not scheduler.attempt(pod("p1", "c1"))[1].node
    else:
        again["metadata"]["uid"] = "another"
    if how == "gone and made again":
        scheduler.world.carry_out(("object", "persistentvolumes", ("", "a"), None))
        assert not scheduler.attempt(pod("p1", "c1"))[1].node
    scheduler.put("persistentvolumes", again)
    assert scheduler.chosen(pod("p2", "c1")) == {"c1": "a"}


def test_pods_that_share_a_claim_go_where_its_volume_was_promised() -> None:
    scheduler = Scheduler(volume("far", "n1"), nodes=("n0", "n1", "n2"))
    scheduler.put("persistentvolumeclaims", claim("c0"))
    scheduler.put("persistentvolumeclaims", claim("c1", "made"))
    assert scheduler.attempt(pod("p0", "c0"))[1].node == "n1"
    assert scheduler.attempt(pod("p1", "c0"))[1].node == "n1"
    first = scheduler.attempt(pod("p2", "c1"))[1]
    assert first.state is not None
    assert first.state.find(CHOSEN) == (VolumeChoice(claim="c1", volume=""),)
    assert [scheduler.attempt(pod(f"q{number}", "c1"))[1].node for number in range(5)] == [first.node] * 5


def test_two_claims_of_a_pod_get_two_volumes_the_smaller_claim_the_smaller_one() -> None:
    scheduler = Scheduler(volume("big", size="3Gi"), volume("small", size="2Gi"))
    large = claim("large")
    large["spec"]["resources"]["requests"]["storage"] = "2Gi"
    scheduler.put("persistentvolumeclaims", large)
    scheduler.put("persistentvolumeclaims", claim("little"))
    assert scheduler.chosen(pod("p0", "large", "little")) == {"little": "small", "large": "big"}


def test_a_volume_stays_promised_as_long_as_one_of_the_pods_that_share_its_claim_stands() -> None:
    """A promise to a pod that found no place ends, and takes nothing from the pod that has one."""
    scheduler = Scheduler(volume("a", "n0"), volume("b", "n1"), nodes=("n0", "n1"))
    for name in ("c0", "c1"):
        scheduler.put("persistentvolumeclaims", claim(name))
    books, reference = scheduler.books(), ObjectReference(namespace="default", name="c0", uid="uid-c0")
    scheduler.place(storage_worlds.view(pod("p0", "c0")), "n0")
    for uid in ("p0", "p1"):
        books.promise(uid, Promises({"a": reference}, {("default", "c1"): "n0"}))
    a = scheduler.world.snapshot.objects("persistentvolumes")["", "a"]
    c1 = scheduler.world.snapshot.objects("persistentvolumeclaims")["default", "c1"]
    for _ in range(2):
        assert books.claim_of(a) == reference
        assert books.selected_node(c1) == "n0"
    scheduler.world.snapshot.nodes.remove("p0")
    assert books.claim_of(a) is None
    assert books.selected_node(c1) is None
    assert not books.promised


def test_what_was_promised_in_vain_is_free_when_the_pods_claim_is_bound_otherwise() -> None:
    """As in the binder, where a decision that came to nothing is followed by another one for the same pod."""
    scheduler = Scheduler(volume("a"), volume("b"))
    view, snapshot = storage_worlds.view(pod("p0", "c0")), scheduler.world.snapshot
    reference = ObjectReference(namespace="default", name="c0", uid="uid-c0")
    scheduler.books().promise("p0", Promises({"a": reference}, {}))
    bound = claim("c0")
    bound["spec"]["volumeName"] = "b"
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    scheduler.put("persistentvolumeclaims", bound)
    scheduler.put("persistentvolumes", volume("b", claim={"namespace": "default", "name": "c0", "uid": "uid-c0"}))
    (plugin,) = (one for one in PROFILE.pre_bind if one.name == "VolumeBinding")
    assert plugin.pre_bind(CycleState(), view, snapshot, "n0").writes == ()
    scheduler.place(view, "n0")
    scheduler.put("persistentvolumeclaims", claim("c1"))
    assert scheduler.chosen(pod("p1", "c1")) == {"c1": "a"}


def test_promises_change_the_version_and_only_then() -> None:
    books = Scheduler().books()
    start = books.version
    books.promise("p0", Promises({}, {}))
    books.forget("p0")
    assert books.version == start
    books.promise("p0", Promises({}, {("default", "c0"): "n0"}))
    assert books.version == start + 1
    books.forget("p0")
    assert books.version == start + 2


def test_pods_without_volumes_cost_their_cycle_nothing() -> None:
    scheduler = Scheduler()
    view, result = scheduler.attempt(pod("p0"))
    assert result.state is not None
    assert result.state.find(CHOSEN) is None
    volume_plugins = {"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}
    assert volume_plugins <= result.state.skip_filter
    other = storage_worlds.view(pod("q"))
    for plugin in PROFILE.filter:
        if plugin.name in volume_plugins:
            assert isinstance(plugin, FilterToken)
            assert isinstance(plugin, Signed)
            assert plugin.filter_token(view, scheduler.world.snapshot) is None
            assert plugin.signature(view) == plugin.signature(other)


def test_a_claim_that_changes_is_judged_anew_by_a_kept_judgement() -> None:
    scheduler = Scheduler()
    scheduler.put("persistentvolumeclaims", claim("c0"))
    assert not scheduler.attempt(pod("p0", "c0"))[1].node
    scheduler.put("persistentvolumes", volume("a"))
    assert scheduler.chosen(pod("p0", "c0")) == {"c0": "a"}


def test_a_claim_that_is_named_twice_takes_two_volumes_of_its_own() -> None:
    own = {"namespace": "default", "name": "c", "uid": ""}
    scheduler = Scheduler(volume("a", claim=own), volume("b", claim=own), volume("free"))
    scheduler.put("persistentvolumeclaims", claim("c"))
    assert scheduler.chosen(pod("p", "c", "c")) == {"c": "a"}
    scheduler = Scheduler(volume("a", claim=own), volume("b", "elsewhere", claim=own), volume("free"))
    scheduler.put("persistentvolumeclaims", claim("c"))
    _, result = scheduler.attempt(pod("p", "c", "c"))
    assert result.node == "", "the second of its own is out of reach, and no other will do"


def test_two_claims_with_volumes_of_their_own_do_not_take_turns() -> None:
    own = {name: {"namespace": "default", "name": name} for name in ("c0", "c1")}
    scheduler = Scheduler(volume("a", claim=own["c0"]), volume("b", claim=own["c1"]), volume("c"))
    for name in own:
        scheduler.put("persistentvolumeclaims", claim(name))
    assert scheduler.chosen(pod("p0", "c0", "c1")) == {"c0": "a", "c1": "b"}
