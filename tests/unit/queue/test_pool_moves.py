"""A pod goes where the table lets it, and nowhere else."""

import ast
from pathlib import Path

import pytest

import podyard.queue
from podyard.proto.pools import Pool
from podyard.queue.core.pool_moves import NEXT, WrongPoolError
from tests.unit.queue.play import new_queue, park, queued

PACKAGE = Path(podyard.queue.__file__).parent


def test_the_table_knows_every_pool_and_leads_from_everywhere_out_of_the_queue() -> None:
    assert set(NEXT) == set(Pool)
    assert all(Pool.NOWHERE in NEXT[pool] for pool in Pool if pool is not Pool.NOWHERE)


@pytest.mark.parametrize(
    ("pool", "wanted"),
    [
        (Pool.ACTIVE, Pool.UNSCHEDULABLE),
        (Pool.ACTIVE, Pool.BINDING),
        (Pool.BACKOFF, Pool.UNSCHEDULABLE),
        (Pool.ERROR_BACKOFF, Pool.IN_FLIGHT),
        (Pool.UNSCHEDULABLE, Pool.IN_FLIGHT),
        (Pool.GATED, Pool.BINDING),
        (Pool.BINDING, Pool.IN_FLIGHT),
    ],
)
def test_a_pod_that_would_go_where_it_cannot_is_a_bug_that_says_so(pool: Pool, wanted: Pool) -> None:
    pod = queued("a")
    pod.enter(pool)
    with pytest.raises(WrongPoolError, match=f"pod uid-a cannot go from {pool} to {wanted}"):
        pod.enter(wanted)
    assert pod.pool is pool


def test_a_pods_whole_life_keeps_to_the_table() -> None:
    queue = new_queue()
    pod = park(queue, "a", "OnNodes")
    queue.activate(pod.uid, 20.0)
    assert queue.pop() is pod
    assert queue.await_binding(pod.uid)
    queue.fail(pod.uid, 30.0)
    queue.flush_backoff(60.0)
    assert queue.pop() is pod
    assert queue.await_binding(pod.uid)
    queue.delete(pod.uid)
    assert pod.pool is Pool.NOWHERE


def test_one_place_writes_a_pods_pool() -> None:
    """Who adds another goes round the table."""
    writers = {
        (path.name, node.lineno)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr == "pool"
    }
    assert {name for name, _ in writers} == {"queued_pod.py"}
    assert len(writers) == 1, "in `enter`; the beginning is the default of the field"
