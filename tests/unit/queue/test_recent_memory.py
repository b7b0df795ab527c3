"""The memory of recent changes keeps what happened, not the objects that it happened to."""

import gc
import tracemalloc

from podyard.cluster.changes import Change, Origin
from podyard.cluster.pods import PodView
from podyard.framework import events
from podyard.queue.core import recent
from podyard.queue.core.messages import Incoming
from podyard.queue.core.recent import Recent
from tests.unit.framework.builders import make_pod


def large(number: int) -> PodView:
    """A view of some 100 KB, with a name that no door lets in."""
    labels = {f"key-{number}": "v" * 100_000}
    return PodView(
        make_pod(f"{'x' * 3000}-{number}", labels=labels).stored, ("default", "x" * 3000), f"u{number}", number
    )


def test_it_stays_within_its_bound_whatever_the_objects_are() -> None:
    memory = Recent()
    most = recent.KEPT * recent.ENTRY_BYTES
    tracemalloc.start()
    try:
        for number in range(recent.KEPT + 100):
            view = large(number)
            memory.note(Change("pods", view.uid, None, view, Origin(number)), float(number))
            memory.note(Incoming(event=events.NODE_ADD, new=view, id="i" * 100_000 + str(number)), float(number))
        del view
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < most
    assert len(memory.events(0.0)) == recent.KEPT
