"""The census taker of workloads: objects come and go, censuses are stored, refused and outrun, and a killed
server brings back more than is deleted at a time."""

from podyard.workloads.core import census
from podyard.workloads.core.census import CensusTaker, Clear, Cleared, Roll, Take, Taken
from tests.contract.cores.recording import Case
from tests.unit.workloads.test_census import DUE_S, LIFE_S, Stage

NAMES = tuple(f"cluster.pods.d.p{index}" for index in range(2 * census.AT_ONCE + 3))


def begin() -> tuple[CensusTaker, Roll]:
    roll = Roll()
    return CensusTaker(roll, LIFE_S), roll


def play() -> None:
    stage = Stage()
    stage.listed(*NAMES[:60])
    stage.now += DUE_S
    stage.taken()
    names = iter(NAMES[:60])
    for many in (1, 7, 6, 8, 9):
        for _ in range(many):
            stage.delete(next(names))
            stage.now += 1.0
        stage.now += DUE_S
        stage.taken()
    for many in (1, 2, 1):
        for _ in range(many):
            stage.delete(next(names))
        (refused,) = stage.pass_time(DUE_S)
        assert isinstance(refused, Take)
        stage.tell(Taken(False))
        stage.now += DUE_S
        stage.taken()
    stage.listed(*NAMES[:3], held=100, replicas=3)
    stage.pass_time(DUE_S)
    (first,) = stage.listed("cluster.pods.d.new", back=NAMES)
    assert isinstance(first, Clear)
    stage.tell(Cleared(first.listing, first.messages[:2]))
    (second,) = stage.pass_time(census.RETRY_S)
    assert isinstance(second, Clear)
    (third,) = stage.tell(Cleared(second.listing, ()))
    assert isinstance(third, Clear)
    stage.tell(Cleared(third.listing, ()))
    stage.now += DUE_S
    stage.taken()


CASE = Case(
    "census taker",
    CensusTaker,
    Roll,
    play,
    begin,
    census.Tick(),
    (Taken, Cleared),
    fed_by=("begin", "passed", "note_other", "note"),
)
