"""Subjects picked as the server's filters pick them."""

import pytest

from podyard.bus.watch import picker


@pytest.mark.parametrize(
    ("subjects", "subject", "picked"),
    [
        (("cluster.pods.>",), "cluster.pods.default.a", True),
        (("cluster.pods.>",), "cluster.podstatus.n1.default.a.u1", False),
        (("cluster.pods.>",), "cluster.pods", False),
        (("placement.fence",), "placement.fence", True),
        (("placement.fence",), "placement.fences", False),
        (("placement.fence",), "placement.fence.x", False),
        (("cluster.*.*.*",), "cluster.pods.default.a", True),
        (("cluster.*.*.*",), "cluster.nodestatus.n1", False),
        (("cluster.*.*.*",), "cluster.podstatus.n1.default.a.u1", False),
        (("cluster.podstatus.*.>",), "cluster.podstatus.n1.default.a.u1", True),
        (("cluster.podstatus.*.>",), "cluster.podstatus.n1", False),
        (("cluster.nodes._.n%2E1", "placement.fence"), "cluster.nodes._.n%2E1", True),
        (("cluster.nodes._.n%2E1", "placement.fence"), "cluster.nodes._.n%2E12", False),
        ((">",), "anything", True),
        (("cluster.*.*.*", "placement.bindings.>", "placement.fence"), "placement.bindings.default.a.u1", True),
        (("cluster.*.*.*", "placement.bindings.>", "placement.fence"), "placement.commits.1", False),
    ],
)
def test_picks_what_the_wildcards_mean(subjects: tuple[str, ...], subject: str, picked: bool) -> None:
    assert picker(subjects)(subject) is picked
