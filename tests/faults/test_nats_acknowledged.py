"""The ledger of acknowledged writes finds each kind of loss: otherwise the fault tests would prove
nothing."""

import pytest

from tests.faults.acknowledged import ROOT, Load, Stored

GOOD = {
    f"{ROOT}.load-a": Stored(1, b"a"),
    f"{ROOT}.load-b-1": Stored(2, b"b"),
    f"{ROOT}.load-b-2": Stored(3, b"b"),
    f"{ROOT}.load-unclear": Stored(4, b"u"),
}
FIRST = f"{ROOT}.load-a"


def written() -> Load:
    load = Load([])
    load.sent = {subject: one.payload for subject, one in GOOD.items()} | {f"{ROOT}.load-refused": b"r"}
    load.acknowledged = {subject: one for subject, one in GOOD.items() if subject != f"{ROOT}.load-unclear"}
    load.batches = [([f"{ROOT}.load-b-1", f"{ROOT}.load-b-2"], True)]
    load.refused = {f"{ROOT}.load-refused"}
    return load


def test_all_that_was_acknowledged_and_something_unclear_is_good() -> None:
    assert written().faults(GOOD) == []
    assert written().faults({subject: one for subject, one in GOOD.items() if "unclear" not in subject}) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        pytest.param({FIRST: None}, "there is nothing", id="lost"),
        pytest.param({FIRST: Stored(1, b"other")}, "not what was acknowledged", id="another payload"),
        pytest.param({FIRST: Stored(0, b"a")}, "was acknowledged, there is @0", id="an older version"),
        pytest.param({f"{ROOT}.load-b-2": None}, "there are 1 of 2", id="half a batch"),
        pytest.param({f"{ROOT}.load-refused": Stored(9, b"r")}, "was refused, and is there", id="refused"),
        pytest.param({f"{ROOT}.load-foreign": Stored(9, b"f")}, "nobody sent", id="foreign"),
    ],
)
def test_each_kind_of_loss_is_found(changed: dict[str, Stored | None], told: str) -> None:
    found = {subject: one for subject, one in {**GOOD, **changed}.items() if one is not None}
    assert any(told in fault for fault in written().faults(found))


def test_half_a_batch_is_found_when_its_answer_was_unclear() -> None:
    load = written()
    load.batches = [(load.batches[0][0], False)]
    for subject in load.batches[0][0]:
        del load.acknowledged[subject]
    assert load.faults({subject: one for subject, one in GOOD.items() if "b-" not in subject}) == []
    assert load.faults({subject: one for subject, one in GOOD.items() if "b-2" not in subject})
