import pytest

from podyard.bus import errors
from podyard.bus.errors import ApiError, from_api


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (10071, errors.Conflict),
        (10164, errors.Conflict),
        (10176, errors.Conflict),
        (10059, errors.NotFound),
        (10014, errors.NotFound),
        (10077, errors.StreamFull),
        (10023, errors.StreamFull),
        (10047, errors.StreamFull),
        (10054, errors.TooLarge),
        (10008, errors.Unavailable),
        (10210, errors.Busy),
        (10166, errors.Refused),
    ],
)
def test_codes_of_a_single_publish(code: int, expected: type[errors.BusError]):
    assert type(from_api(ApiError(400, code, "why"), "cluster.pods.d.a")) is expected


@pytest.mark.parametrize("code", [10164, 10176])
def test_a_batch_refused_without_a_number_is_unclear_about_the_reason(code: int):
    error = from_api(ApiError(400, code, "why"), "placement.fence", batch_id="b1")
    assert isinstance(error, errors.BatchUnclear)
    assert (error.batch_id, error.code) == ("b1", code)


def test_the_number_of_a_conflict_is_read():
    single = from_api(ApiError(400, 10071, "wrong last sequence: 47"), "cluster.pods.d.a")
    assert isinstance(single, errors.Conflict)
    assert (single.subject, single.last_sequence) == ("cluster.pods.d.a", 47)
    batch = from_api(ApiError(400, 10071, "wrong last sequence: 0"), "placement.fence", batch_id="b1")
    assert isinstance(batch, errors.Conflict)
    assert (batch.subject, batch.last_sequence) == ("", 0)


def test_an_unknown_503_is_temporary():
    assert isinstance(from_api(ApiError(503, 19999, "soon"), "x"), errors.Unavailable)


def test_branches_tell_what_to_do():
    assert issubclass(errors.StreamFull, errors.TemporaryError)
    assert issubclass(errors.NoResponders, errors.Unavailable)
    assert not issubclass(errors.Unclear, errors.TemporaryError | errors.PermanentError)
