"""A plugin that raises, or answers nonsense, in any hook that the binder calls: that decision is answered so,
the others are bound."""

from typing import Any

import pytest

from podyard.binder.core import effects
from podyard.framework.interfaces import ObjectWrite, PreBindResult
from podyard.framework.profile import Enabled, Profile, resolve
from tests.support import failing
from tests.support.failing import FAULTS, NONSENSE, Everything
from tests.unit.binder.stage import Stage

IN_THE_BINDER = ("pre_filter", "filter_one", "verdict", "pre_bind_pre_flight", "pre_bind", "bind", "post_bind")
UNWRITABLE = {
    "an object": {"spec": object()},
    "half a character": {"spec": "\ud800"},
    "a version that is no number": {"metadata": {"resourceVersion": "abc"}},
    "metadata that is a list": {"metadata": []},
    "too large": {"spec": "x" * 2_000_000},
}


def with_plugin(plugin: Everything) -> Profile:
    return resolve("default-scheduler", [Enabled(plugin=plugin)])


def bound(plugin: Everything) -> tuple[Any, list[str]]:
    """A binder with two good pods bound around a bad one; and the results."""
    stage = Stage()
    stage.node("n1")
    stage.node("refused")
    for name in ("good-1", "bad", "good-2"):
        stage.pod(name)
    term = stage.serving(profile=with_plugin(plugin))
    node = "refused" if plugin.refuses else "n1"
    results = term.bind(stage.decide("good-1"), stage.decide("bad", node=node), stage.decide("good-2"))
    return term, results


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", IN_THE_BINDER)
def test_a_hook_that_raises_is_the_answer_to_that_decision(hook: str, fault: str) -> None:
    plugin = failing.failing(hook, FAULTS[fault])
    plugin.refuses = hook == "verdict"
    term, results = bound(plugin)
    assert plugin.amiss, "the play does not call this hook"
    assert results == ["bound", "bound" if hook == "post_bind" else "error", "bound"]
    failed = term.of(effects.PluginFailed)
    assert {one.plugin for one in failed} == {"Everything"}
    assert {one.point.lower() for one in failed} == {
        hook.replace("_one", "").replace("verdict", "filter").replace("_", "")
    }


@pytest.mark.parametrize("answer", NONSENSE)
@pytest.mark.parametrize("hook", IN_THE_BINDER)
def test_a_hook_that_answers_nonsense_spoils_nobody_elses_batch(hook: str, answer: str) -> None:
    plugin = failing.failing(hook, lambda: NONSENSE[answer])
    plugin.refuses = hook == "verdict"
    term, results = bound(plugin)
    assert plugin.amiss, "the play does not call this hook"
    assert [results[0], results[2]] == ["bound", "bound"]
    term.stage.pod("good-3")
    assert term.bind(term.stage.decide("good-3")) == ["bound"]


@pytest.mark.parametrize("document", UNWRITABLE)
def test_an_object_that_cannot_be_written_fails_the_decision_that_wants_it(document: str) -> None:
    write = ObjectWrite(resource="persistentvolumes", namespace="", name="v", document=UNWRITABLE[document])
    plugin = failing.failing("pre_bind", lambda: PreBindResult(writes=(write,)))
    term, results = bound(plugin)
    assert results == ["bound", "error", "bound"]
    assert [one.point for one in term.of(effects.PluginFailed)] == ["PreBind"]
