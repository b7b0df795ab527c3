"""The heap of pods."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podyard.queue.core.pod_heap import SLACK, PodHeap
from tests.unit.queue.play import queued


def test_a_pod_put_in_again_is_where_its_new_key_belongs() -> None:
    heap, (a, b) = PodHeap(), (queued("a"), queued("b"))
    heap.push((1,), a)
    heap.push((2,), b)
    heap.push((3,), a)
    assert [pod.key[1] for pod in heap] == ["b", "a"]
    assert [heap.pop(), heap.pop(), heap.pop()] == [b, a, None]


def test_a_removed_pod_does_not_come_up() -> None:
    heap, (a, b) = PodHeap(), (queued("a"), queued("b"))
    heap.push((1,), a)
    heap.push((2,), b)
    assert heap.remove(a)
    assert not heap.remove(a)
    assert (len(heap), heap.head()) == (1, b)


def test_dead_entries_do_not_pile_up() -> None:
    heap, pod = PodHeap(), queued("a")
    for key in range(10 * SLACK):
        heap.push((key,), pod)
    assert len(heap._line) + len(heap._heap) <= SLACK + 3
    assert heap.pop() is pod


def test_dead_entries_of_pods_that_come_before_others_do_not_pile_up() -> None:
    heap, pod = PodHeap(), queued("a")
    heap.push((0,), queued("last"))
    for key in range(10 * SLACK):
        heap.push((-key,), pod)
    assert len(heap._line) + len(heap._heap) <= SLACK + 4
    assert heap.pop() is pod


class Spoilt:
    """A sort key that compares with none."""

    def __lt__(self, other: Any) -> bool:
        raise TypeError("no order")


NAMES = tuple("abcdefgh")
named = st.sampled_from(NAMES)
plays = st.lists(
    st.one_of(
        st.tuples(st.just("push"), named, st.integers(0, 3)),
        st.tuples(st.just("remove"), named, st.just(0)),
        st.tuples(st.just("pop"), st.just(""), st.just(0)),
    ),
    max_size=60,
)


@given(plays)
def test_pods_come_out_by_their_keys_then_as_they_were_put_in(play: list[tuple[str, str, int]]) -> None:
    heap, pods = PodHeap(), {name: queued(name) for name in NAMES}
    there: dict[str, tuple[int, int]] = {}
    for number, (act, name, key) in enumerate(play):
        order = sorted(there, key=lambda one: there[one])
        assert [pod.key[1] for pod in heap] == order
        if act == "push":
            heap.push(key, pods[name])
            there[name] = key, number
        elif act == "remove":
            assert heap.remove(pods[name]) is (there.pop(name, None) is not None)
        else:
            found = heap.pop()
            assert (None if found is None else found.key[1]) == (order[0] if order else None)
            there.pop(order[0] if order else "", None)


@given(plays, st.sets(st.integers(0, 60), min_size=1))
def test_no_pod_is_lost_when_keys_do_not_compare(play: list[tuple[str, str, int]], spoilt: set[int]) -> None:
    heap, pods = PodHeap(), {name: queued(name) for name in NAMES}
    there: set[str] = set()
    for number, (act, name, key) in enumerate(play):
        if act == "push":
            heap.push(Spoilt() if number in spoilt else key, pods[name])
            there.add(name)
        elif act == "remove":
            assert heap.remove(pods[name]) is (name in there)
            there.discard(name)
        else:
            found = heap.pop()
            assert (found is None) is (not there)
            there.discard("" if found is None else found.key[1])
        assert (len(heap), {pod.key[1] for pod in heap}) == (len(there), there)
