"""The table that ends a run says of each script, and of all, what came of its steps."""

from tests.kube.side_by_side import summary


def test_scripts_stand_in_order_and_all_are_added_up() -> None:
    assert summary.table([["watch", 13, 12, 0, 1], ["apply", 33, 31, 2, 0]]) == [
        "script  steps  the same  differ as told  wrong",
        "apply      33        31               2      0",
        "watch      13        12               0      1",
        "all        46        43               2      1",
    ]
