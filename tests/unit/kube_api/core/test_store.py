"""What the API answers from: versions of joined objects, and the steps between them."""

from collections.abc import Sequence

from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.history import Gap
from podyard.kube_api.core.items import Step
from podyard.kube_api.core.shelves import Scope
from podyard.objects import secrets
from podyard.proto import codec, subjects
from podyard.proto.facts import PodScheduledFact, QuotaUsageFact
from tests.support import objects, stored
from tests.unit.kube_api.core.world import World

WEB = ObjectKey("pods", "default", "web")


class Told:
    """A reader that remembers what it is told."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.gaps: list[Gap] = []
        self.forgotten_at: list[int] = []

    def offer(self, steps: Sequence[Step]) -> None:
        self.steps += steps

    def missed(self, gap: Gap) -> None:
        self.gaps.append(gap)

    def forgotten(self, position: int) -> None:
        self.forgotten_at.append(position)


def world() -> tuple[World, Told]:
    made, told = World(), Told()
    made.store.reader = told
    made.node("n1")
    made.relist()
    return made, told


def versions(told: Told) -> list[tuple[str, int]]:
    return [(step.path, step.version) for step in told.steps]


def version(made: World, key: ObjectKey = WEB) -> int:
    item = made.store.item(key)
    assert item is not None
    return item.version


def test_whatever_is_joined_to_a_pod_gives_it_another_version():
    made, told = world()
    wrote = [
        made.pod("web"),
        made.nominate("web", "n1"),
        made.bind("web", "n1"),
        made.status("web", "n1", "Running"),
        made.lose("n1"),
    ]
    made.deliver()
    assert [one for one in versions(told) if one[0] != "n1"] == [("default/web", at) for at in wrote]
    assert version(made) == wrote[-1]


def test_what_is_not_joined_gives_none():
    made, told = world()
    at = made.pod("web")
    made.status("web", "n1", "Running")  # no agent speaks of a pod that is not bound
    made.deliver()
    assert versions(told) == [("default/web", at)]
    assert made.store.position == made.stream.last


def test_a_listing_gives_the_versions_that_following_gave():
    made, _ = world()
    made.pod("web")
    made.bind("web", "n1")
    last = made.status("web", "n1", "Running")
    made.pod("idle")
    made.deliver()
    other = World()
    other.stream = made.stream
    other.relist()
    assert version(other) == version(made) == last
    item, same = other.store.item(WEB), made.store.item(WEB)
    assert item is not None
    assert same is not None
    assert item.moment.document({}) == same.moment.document({})


def test_usage_of_a_quota_is_a_version_of_it():
    made, told = world()
    quota = {"metadata": {"name": "q", "namespace": "default", "uid": "u"}, "spec": {"hard": {"pods": "2"}}}
    made.stream.put(stored.version("resourcequotas", quota))
    fact = QuotaUsageFact(namespace="default", name="q", uid="u", hard={"pods": "2"}, used={"pods": "1"})
    used = made.stream.put(stored.Outgoing(subjects.quota_usage("default", "q", "u"), codec.encode(fact))).sequence
    made.deliver()
    assert versions(told)[-1] == ("default/q", used)
    item = made.store.item(ObjectKey("resourcequotas", "default", "q"))
    assert item is not None
    assert item.moment.document({})["status"] == {"hard": {"pods": "2"}, "used": {"pods": "1"}}


def refuse(made: World, name: str, message: str, *, over: bool = False) -> int:
    uid = objects.pod(name)["metadata"]["uid"]
    fact = PodScheduledFact(namespace="default", name=name, uid=uid, reason="Unschedulable", message=message, since=9.0)
    subject = subjects.pod_scheduled("default", name, uid)
    return made.stream.put(stored.Outgoing(subject, b"" if over else codec.encode(fact), deleted=over)).sequence


def conditions(made: World) -> list[tuple[str, str, str]]:
    item = made.store.item(WEB)
    assert item is not None
    found = item.moment.document({}).get("status", {}).get("conditions", [])
    return [(one["type"], one["status"], one.get("message", "")) for one in found]


def test_why_a_pod_is_not_scheduled_is_a_version_of_it():
    made, told = world()
    wrote = [made.pod("web"), refuse(made, "web", "0/1 nodes")]
    made.deliver()
    wrote.append(refuse(made, "web", "0/2 nodes"))
    made.deliver()
    assert versions(told) == [("default/web", at) for at in wrote]
    assert conditions(made) == [("PodScheduled", "False", "0/2 nodes")]
    assert not made.store.settled
    other = World()
    other.stream = made.stream
    other.relist()
    assert (version(other), conditions(other)) == (wrote[-1], conditions(made))


def test_it_is_over_once_the_pod_is_bound_and_may_be_taken_back():
    made, _ = world()
    uid = objects.pod("web")["metadata"]["uid"]
    made.pod("web")
    refuse(made, "web", "0/1 nodes")
    bound_at = made.bind("web", "n1")
    late = refuse(made, "web", "0/1 nodes")
    made.deliver()
    assert conditions(made) == [("PodScheduled", "True", "")]
    assert (version(made), made.store.settled.keys()) == (bound_at, {uid})
    assert made.store.refusals == {uid: late}
    refuse(made, "web", "", over=True)
    made.deliver()
    assert (version(made), made.store.refusals, made.store.settled) == (bound_at, {}, {})


def test_of_several_steps_of_one_message_only_the_last_has_its_version():
    made, told = world()
    for name in ("a", "b", "c"):
        made.pod(name)
        made.bind(name, "n1")
    before = made.status("b", "n1", "Running")
    lost = made.lose("n1")
    made.deliver()
    assert before == lost - 1
    steps = [step for step in told.steps if step.at == lost and step.resource == "pods"]
    # b has the version before already
    assert [(step.path, step.version) for step in steps] == [
        ("default/a", lost - 1),
        ("default/c", lost - 1),
        ("default/b", lost),
    ]


def test_a_listing_anew_tells_differences_and_nothing_else():
    made, told = world()
    made.pod("web")
    made.pod("old")
    made.deliver()
    after = made.store.position
    told.steps.clear()
    kept = made.store.item(WEB)
    ended, came = made.delete_pod("old"), made.pod("new")
    made.relist()
    assert versions(told) == [("default/old", ended), ("default/new", came)]
    assert told.gaps == [Gap(after, came)]
    assert made.store.item(WEB) is kept


def test_of_several_ends_that_nobody_tells_any_more_only_the_last_has_the_position():
    made, told = world()
    for name in ("a", "b", "c"):
        made.pod(name)
    made.deliver()
    told.steps.clear()
    for name in ("a", "b", "c"):
        made.delete_pod(name)
        made.stream.expire(subjects.object_("pods", "default", name))
    made.relist()
    last = made.stream.last
    assert versions(told) == [("default/a", last - 1), ("default/b", last - 1), ("default/c", last)]


def test_pods_that_were_listed_with_one_version_all_get_another():
    made = World()
    made.node("n1")
    for name in ("a", "b", "c"):
        made.pod(name)
        made.bind(name, "n1")
        made.status(name, "n1", "Running")
    made.lose("n1")
    made.relist()
    listed = {item.path: item.version for item in made.store.items(Scope("pods"))}
    made.hear("n1")
    made.deliver()
    for item in made.store.items(Scope("pods")):
        assert item.version > listed[item.path]


def test_what_changed_by_a_message_that_is_gone_has_the_version_of_the_listing():
    made, told = world()
    made.pod("web")
    made.nominate("web", "n1")
    made.deliver()
    told.steps.clear()
    made.stream.expire(subjects.nomination("default", "web", "uid-web"))
    made.node("n2")
    made.node("n3")
    made.relist()
    assert ("default/web", made.stream.last - 1) in versions(told)


def test_a_pod_that_was_made_again_went_and_came():
    made, told = world()
    made.pod("web", uid="one")
    made.deliver()
    told.steps.clear()
    made.delete_pod("web", uid="one")
    made.pod("web", uid="two")
    made.deliver()
    assert [(step.before is None, step.after is None) for step in told.steps] == [(False, True), (True, False)]


def test_a_stream_that_was_made_again_is_another_story():
    made, told = world()
    for name in ("a", "b", "c"):
        made.pod(name)
    made.deliver()
    told.forgotten_at.clear()
    made.stream.remake()
    at = made.pod("a")
    made.relist()
    assert told.forgotten_at == [at]
    assert [item.key.name for item in made.store.items(Scope("pods"))] == ["a"]
    assert not made.store.history.reaches("pods", 0)


def test_objects_come_in_the_order_of_the_reference_s_keys():
    made, _ = world()
    for namespace, name in (("a", "z"), ("a-b", "y"), ("a", "b"), ("b", "a")):
        made.pod(name, namespace=namespace, uid=f"{namespace}-{name}")
    made.deliver()
    # a dash sorts before the slash
    assert [item.path for item in made.store.items(Scope("pods"))] == ["a-b/y", "a/b", "a/z", "b/a"]
    assert [item.path for item in made.store.items(Scope("pods", "a"))] == ["a/b", "a/z"]


def test_a_secret_s_values_are_hidden_unless_they_are_given():
    made, _ = world()
    secret = {"metadata": {"name": "s", "namespace": "default", "uid": "u"}, "data": {"a": "sealed", "b": "sealed"}}
    made.stream.put(stored.version("secrets", secret))
    made.deliver()
    item = made.store.item(ObjectKey("secrets", "default", "s"))
    assert item is not None
    assert item.moment.document({"a": "eA=="})["data"] == {"a": "eA==", "b": secrets.HIDDEN}
