"""Several folds of the same deliveries."""

from podyard.bus import Delivery
from podyard.cluster.changes import Change, Effect, RelistNeeded
from podyard.shell.folds import Beside, Folds


class Noting:
    """A fold that notes in one story what it is told, and asks for a listing at each delivery."""

    def __init__(self, name: str, story: list[str]) -> None:
        self._name, self._story = name, story
        self._effects: list[Effect] = []
        self.position = 0

    def begin_listing(self) -> None:
        self._story.append(f"{self._name} begins")

    def end_listing(self, position: int) -> list[Change]:
        self._story.append(f"{self._name} has listed up to {position}")
        self.position = position
        return []

    def apply(self, delivery: Delivery) -> list[Change]:
        self._story.append(f"{self._name} {delivery.subject}")
        self._effects.append(RelistNeeded(self._name))
        return []

    def advance(self, position: int) -> None:
        self.position = position

    def take_effects(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects


def test_all_are_told_the_main_one_last_and_its_effects_alone_count() -> None:
    story: list[str] = []
    main, beside = Noting("main", story), Noting("beside", story)
    folds = Folds(main, Beside(beside))
    folds.begin_listing()
    folds.end_listing(4)
    folds.apply(Delivery("cluster.pods.default.a", b"", 5))
    assert story == [
        "beside begins",
        "main begins",
        "beside has listed up to 4",
        "main has listed up to 4",
        "beside cluster.pods.default.a",
        "main cluster.pods.default.a",
    ]
    assert folds.take_effects() == [RelistNeeded("main")]
    assert beside.take_effects() == [], "what it asked for is forgotten"
    folds.advance(7)
    assert (folds.position, beside.position) == (7, 7)


def test_what_one_is_not_to_be_told_it_is_not_told() -> None:
    story: list[str] = []
    folds = Folds(Noting("main", story), Beside(Noting("beside", story), without=("cluster.podstatus.",)))
    folds.apply(Delivery("cluster.podstatus.n1.default.a.uid", b"", 1))
    folds.apply(Delivery("cluster.pods.default.a", b"", 2))
    assert story == [
        "main cluster.podstatus.n1.default.a.uid",
        "beside cluster.pods.default.a",
        "main cluster.pods.default.a",
    ]
