"""What is remembered of what changed."""

from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.history import MOST_GAPS, Gap, History
from podyard.kube_api.core.items import Given, Item, Step


def item(at: int, size: int = 100) -> Item:
    return Item("default/a", Given(ObjectKey("pods", "default", "a"), Stored(at, b" " * size, False)), at)


def step(at: int, resource: str = "pods", size: int = 100) -> Step:
    return Step(resource, "default/a", None, item(at, size), at, at)


def test_what_happened_since_a_version_is_what_came_after_it():
    history = History()
    history.forget(10)
    history.add([step(11), step(12), step(14)])
    assert [one.at for one in history.since("pods", 11)] == [12, 14]
    assert history.since("pods", 14) == []
    assert not history.reaches("pods", 9)
    assert history.reaches("pods", 10)
    assert history.reaches("nodes", 10)


def test_it_takes_no_more_than_it_may_and_says_how_far_it_reaches():
    history = History(most_bytes=10_000)
    history.add([step(at, size=400) for at in range(1, 20)])
    assert history.bytes <= 10_000
    kept = history.since("pods", history.floor("pods"))
    assert kept[0].at == history.floor("pods") + 1
    assert history.bytes == sum(one.bytes for one in kept)
    assert not history.reaches("pods", history.floor("pods") - 1)


def test_the_resource_that_changes_most_forgets_first():
    history = History(most_bytes=10_000)
    history.add([step(1, "nodes", 400), *(step(at, size=400) for at in range(2, 30))])
    assert [one.at for one in history.since("nodes", 0)] == [1]
    assert history.floor("pods") > 1


def test_nobody_knows_what_happened_since_a_version_within_a_gap():
    history = History()
    history.missed(Gap(10, 20))
    assert [at for at in (10, 11, 19, 20) if history.reaches("pods", at)] == [10, 20]


def test_of_many_gaps_the_oldest_are_an_end_of_what_is_known():
    history = History()
    history.add([step(5)])
    for at in range(MOST_GAPS + 1):
        history.missed(Gap(10 * at + 10, 10 * at + 15))
    assert history.floor("pods") == 15
    assert history.bytes == 0
    assert not history.reaches("pods", 4)


def test_what_stood_there_before_is_what_the_first_step_since_found():
    history = History()
    first, second = item(1), item(2)
    history.add(
        [
            Step("pods", "a", None, first, 1, 1),
            Step("pods", "a", first, second, 2, 2),
            Step("pods", "a", second, None, 3, 3),
        ]
    )
    assert history.before("pods", 0) == {"a": None}
    assert history.before("pods", 1) == {"a": first}
    assert history.before("pods", 2) == {"a": second}
    assert history.before("pods", 3) == {}
