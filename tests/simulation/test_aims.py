"""A sabotage that aims at what is not there, or what nobody calls, is told of."""

import sys
from types import ModuleType
from typing import Any

import pytest

from tests.simulation.aims import Aimed


class Target:
    """Something that is sabotaged."""

    def called(self) -> str:
        return "as ever"

    def uncalled(self) -> str:
        return "as ever"

    @property
    def looked_at(self) -> int:
        return 1


class Heir(Target):
    """What is set here was defined there."""


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Where `Target` seems to be; nothing that is set stays."""
    found = ModuleType("podyard.target")
    for one in (Target, Heir):
        monkeypatch.setattr(one, "__module__", found.__name__)
        setattr(found, one.__name__, one)
    for name in ("called", "uncalled", "looked_at"):
        monkeypatch.setattr(Target, name, vars(Target)[name])
    monkeypatch.setitem(sys.modules, found.__name__, found)
    found.function = lambda: "as ever"  # type: ignore[attr-defined]
    return found


def aimed(**attributes: Any) -> Aimed:
    def patch(simulation: Any) -> None:
        for name, value in attributes.items():
            setattr(Target, name, value)

    found = Aimed(patch)
    found(None)  # type: ignore[arg-type]
    return found


def test_what_is_there_and_called_is_no_news() -> None:
    found = aimed(called=lambda self: "otherwise", looked_at=property(lambda self: 2))
    assert (Target().called(), Target().looked_at) == ("otherwise", 2)
    assert found.blind(cut_short=False) == ()


def test_what_nobody_calls_is_told() -> None:
    found = aimed(uncalled=lambda self: "otherwise", looked_at=property(lambda self: 2))
    assert found.blind(cut_short=False) == (
        "podyard.target.Target.uncalled is called by nobody",
        "podyard.target.Target.looked_at is called by nobody",
    )


def test_what_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "gone", None, raising=False)
    monkeypatch.delattr(Target, "gone")
    assert aimed(gone=lambda self: None).blind(cut_short=False) == ("podyard.target.Target.gone is not there",)
    del Target.gone  # type: ignore[attr-defined]


def test_what_is_inherited_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def patch(simulation: Any) -> None:
        monkeypatch.setattr(Heir, "called", lambda self: "otherwise", raising=False)

    found = Aimed(patch)
    found(None)  # type: ignore[arg-type]
    assert Heir().called() == "otherwise"
    assert found.blind(cut_short=False) == ()


def test_a_function_of_a_module_is_watched(module: ModuleType) -> None:
    def patch(simulation: Any) -> None:
        module.function = lambda: "otherwise"  # type: ignore[attr-defined]
        module.missing = lambda: "otherwise"  # type: ignore[attr-defined]

    found = Aimed(patch)
    found(None)  # type: ignore[arg-type]
    assert found.blind(cut_short=False) == (
        "podyard.target.missing is not there",
        "podyard.target.function is called by nobody",
    )
    assert module.function() == "otherwise"
    assert found.blind(cut_short=False) == ("podyard.target.missing is not there",)


def test_a_run_that_was_cut_short_need_not_have_called_all() -> None:
    assert aimed(uncalled=lambda self: "otherwise").blind(cut_short=True) == ()
