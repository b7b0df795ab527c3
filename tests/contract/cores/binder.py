"""The binder: decisions that are bound, refused, bound by others and asked of an extender, sends that are
unclear, pods that end."""

from podyard.binder.core import effects
from podyard.binder.core.binder import Binder
from podyard.cluster.view import ClusterView
from podyard.framework.extenders import Extender
from tests.contract.cores.recording import Case
from tests.unit.binder.stage import PROFILE, Stage, Term, foreign_binding

EXTENDER = Extender(name="http://binds", managed_resources=frozenset({"example.com/gpu"}))


def begin() -> tuple[Binder, ClusterView]:
    term = Term(Stage(), "binder-a", PROFILE, EXTENDER)
    return term.core, term.view


def staged() -> tuple[Stage, Term]:
    stage = Stage()
    stage.node(cpu="4")
    stage.node("n2", cpu="2")
    return stage, stage.term("binder-a", extender=EXTENDER).elect()


def play() -> None:
    stage, term = staged()
    for name in ("a", "b", "c", "d", "e"):
        stage.pod(name)
    stage.pod("gpu", requests={"example.com/gpu": "0"})
    term.ask(stage.decide("a"), stage.decide("b", "n2"), stage.decide("nobody"))
    term.faults.extend(("lost ack", "lost", "ok", "no number"))
    term.ask(stage.decide("c"))
    term.ask(stage.decide("d"), stage.decide("e", "gone"))
    term.ask(stage.decide("gpu"))
    asked = term.of(effects.AskToBind)
    term.step(effects.ExtenderAnswered(asked[-1].key, ""))
    stage.pod("elsewhere", cpu="100m")
    stage.stream.put(foreign_binding("elsewhere"))
    term.ask(stage.decide("elsewhere", "n2"))
    stage.pass_time(0.1)
    stage.status("a")
    stage.remove("pods", "b")
    stage.pass_time(2.0)
    stage.pass_time(60.0)


def deposed() -> None:
    stage, term = staged()
    stage.pod("a")
    stage.pod("b")
    term.ask(stage.decide("a"))
    stage.move_fence("binder-b")
    term.ask(stage.decide("b"))


CASE = Case(
    "binder",
    Binder,
    ClusterView,
    play,
    begin,
    effects.Tick(),
    (effects.Applied, effects.Unclear, effects.Inspected, effects.ExtenderAnswered),
    deposed,
)
