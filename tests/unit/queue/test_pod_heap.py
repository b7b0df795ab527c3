"""The heap of pods."""

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
    assert len(heap._heap) <= SLACK + 3
    assert heap.pop() is pod
