"""What the binder counts differs from the stream only as far as its own writes are not seen yet."""

from podyard.binder.core import holding
from podyard.binder.core.world import World
from podyard.cluster.comparing import Held, compare, contents
from tests.unit.cluster.stream import WrittenStream, bound_pod, listing_of, node_document, pod_document


def stream_with(*bound: str) -> WrittenStream:
    """Nodes n1 and n2, pods a, b and c; these are bound to n1."""
    stream = WrittenStream()
    for name in ("n1", "n2"):
        stream.write("nodes", node_document(name, f"uid-{name}"))
    for name in ("a", "b", "c"):
        stream.write("pods", pod_document(name, f"uid-{name}"))
    stream.commit([bound_pod(name, f"uid-{name}", "n1", stream.last) for name in bound])
    return stream


def world_of(stream: WrittenStream) -> World:
    world = World(listing_of(stream))
    world.rebuild()
    return world


def differs(stream: WrittenStream, world: World) -> bool:
    view = contents(world.view)  # pyright: ignore[reportArgumentType]
    return compare(contents(listing_of(stream)), Held(view, holding.counted(world))).differs


def test_what_is_bound_is_counted() -> None:
    stream = stream_with("a")
    assert not differs(stream, world_of(stream))
    assert set(holding.counted(world_of(stream)).placed) == {"uid-a"}


def test_what_it_has_accepted_is_counted_before_the_stream_says_so() -> None:
    stream = stream_with("a")
    world = world_of(stream)
    world.hold(bound_pod("b", "uid-b", "n2", stream.last))
    assert not differs(stream, world)
    assert holding.nodes(world, 9, 9).nodes[1].pods[0].own == holding.ACCEPTED


def test_what_it_has_released_is_not_counted_though_the_stream_binds_it_still() -> None:
    stream = stream_with("a", "b")
    world = world_of(stream)
    world.free("uid-a")
    assert not differs(stream, world)


def test_a_pod_that_is_lost_from_the_table_is_told() -> None:
    stream = stream_with("a", "b")
    world = world_of(stream)
    world.table.remove("uid-a")
    assert differs(stream, world)
