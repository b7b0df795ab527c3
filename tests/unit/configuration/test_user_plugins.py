"""Plugins of the user: found by their path, checked before anything is asked of them, made with their
arguments."""

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from podyard import configuration
from podyard.configuration import BuildError
from tests.support.user_modules import module
from tests.unit.configuration.documents import loaded, names, one_profile

__all__ = ["module"]

GOOD = """
    import msgspec
    from podyard.framework import one_at_a_time, status

    class Args(msgspec.Struct, forbid_unknown_fields=True):
        label: str = "gpu"

    class Labelled(one_at_a_time.FilterOneNode):
        name = "Labelled"

        def __init__(self, args: Args) -> None:
            self.label = args.label

        def filter_one(self, state, pod, cluster, row):
            return 0

        def verdict(self, state, code):
            return status.unschedulable("no label")

    class Plain(Labelled):
        name = "Plain"

        def __init__(self, args):
            self.given = args

    class Bare(Labelled):
        name = "Bare"

        def __init__(self):
            pass

    class Failing(Labelled):
        name = "Failing"

        def __init__(self, args):
            raise RuntimeError("no GPU found")
"""


def profile(path: str, point: str = "multiPoint", args: Any = None) -> str:
    config = [] if args is None else [{"name": path, "args": args}]
    return one_profile(plugins={point: {"enabled": [{"name": path, "weight": 4}]}}, pluginConfig=config)


def plugin_in(text: str, name: str) -> Any:
    (found,) = configuration.load(text).profiles().values()
    return next(plugin for plugin in found.plugins if plugin.name == name)


def faults(text: str) -> list[str]:
    with pytest.raises(BuildError) as raised:
        configuration.load(text).profiles()
    return [fault.detail for fault in raised.value.faults]


def test_a_class_is_found_by_its_path_and_asked_at_the_points_that_it_has_methods_of(
    module: Callable[[str], str],
) -> None:
    path = f"{module(GOOD)}:Labelled"
    found = configuration.load(profile(path))
    assert names(found.effective()["default-scheduler"]["plugins"]["filter"])[-1] == path
    assert found.profiles()["default-scheduler"].filter[-1].name == "Labelled"
    single = configuration.load(profile(path, "filter")).profiles()["default-scheduler"]
    assert single.filter[-1].name == "Labelled"


def test_arguments_become_the_constructors_type(module: Callable[[str], str]) -> None:
    name = module(GOOD)
    assert plugin_in(profile(f"{name}:Labelled"), "Labelled").label == "gpu"
    assert plugin_in(profile(f"{name}:Labelled", args={"label": "tpu"}), "Labelled").label == "tpu"
    assert plugin_in(profile(f"{name}:Plain", args={"any": [1]}), "Plain").given == {"any": [1]}
    assert plugin_in(profile(f"{name}:Plain"), "Plain").given == {}
    assert plugin_in(profile(f"{name}:Bare"), "Bare").name == "Bare"


def test_arguments_are_part_of_the_digest(module: Callable[[str], str]) -> None:
    path = f"{module(GOOD)}:Plain"
    digests = {
        configuration.load(profile(path, args=args)).profiles()["default-scheduler"].digest for args in ({}, {"a": 1})
    }
    assert len(digests) == 2


def test_arguments_that_do_not_fit_are_refused_with_their_path(module: Callable[[str], str]) -> None:
    name = module(GOOD)
    with pytest.raises(BuildError) as raised:
        configuration.load(profile(f"{name}:Labelled", args={"lable": "x"})).profiles()
    assert "unknown field `lable`" in str(raised.value)
    assert f"pluginConfig of {name}:Labelled" in str(raised.value)
    assert "takes no arguments" in faults(profile(f"{name}:Bare", args={"a": 1}))[0]
    assert faults(profile(f"{name}:Failing")) == ["its constructor failed: RuntimeError: no GPU found"]


def test_what_is_written_back_names_the_plugin_and_its_arguments(module: Callable[[str], str]) -> None:
    path = f"{module(GOOD)}:Plain"
    written = configuration.load(profile(path, args={"a": 1})).written()["profiles"][0]
    assert {"name": path, "args": {"a": 1}} in written["pluginConfig"]
    assert {"name": path, "weight": 4} in written["plugins"]["multiPoint"]["enabled"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("nowhere.at.all:X", "there is no module nowhere; install it, or put its directory on PYTHONPATH"),
        ("a b:X", "write `package.module:Class`"),
        ("json:Nothing", "module json has no Nothing; classes in it: none"),
        ("json:dumps", "is no class, but a function"),
        ("{broken}:X", "cannot be imported: ZeroDivisionError"),
        ("{needy}:X", "needs another one that is not there: absent_for_sure"),
    ],
)
def test_what_cannot_be_loaded(module: Callable[[str], str], path: str, told: str) -> None:
    broken, needy = module("1 / 0\n"), module("import absent_for_sure\n")
    (fault,) = faults(profile(path.format(broken=broken, needy=needy)))
    assert told in fault


def test_all_plugins_that_cannot_be_used_are_told_at_once() -> None:
    text = one_profile(plugins={"multiPoint": {"enabled": [{"name": "nowhere:X"}, {"name": "json:dumps"}]}})
    assert len(faults(text)) == 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param("def pre_enqueue(self, pod): ...", 'it has no name; write `name = "Mine"`', id="name"),
        pytest.param("name = 'Mine'", "the methods of no extension point", id="nothing"),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod): ...",
            "`pre_filter` lacks cluster; write `def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot)",
            id="missing parameter",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, snapshot): ...",
            "`pre_filter` lacks cluster and has snapshot, which nobody passes",
            id="wrong name",
        ),
        pytest.param("name = 'Mine'\ndef pre_filter(self, pod, state, cluster): ...", "in another order", id="order"),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod, cluster): ...",
            "`pre_enqueue` has cluster, which nobody passes; write `def pre_enqueue(self, pod: Pod) -> Status`",
            id="parameter too many",
        ),
        pytest.param(
            "name = 'Mine'\nasync def pre_enqueue(self, pod): ...",
            "must be an ordinary function, without async",
            id="async",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod): ...\ndef prefilter(self, state, pod, cluster): ...",
            "`prefilter` is never called; if `pre_filter` is meant, write `def pre_filter(self,",
            id="letters",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod): ...\ndef PostBind(self): ...",
            "`PostBind` is never called; if `post_bind` is meant",
            id="as Go writes it",
        ),
        pytest.param(
            "name = 'Mine'\ndef filter_one(self, state, pod, cluster, row): ...\ndef verdict(self, state, code): ...",
            "or derive the class from podyard.framework.one_at_a_time.FilterOneNode",
            id="incomplete",
        ),
        pytest.param(
            "name = 'Mine'\ndef score(self, state, pod, cluster, rows): ...\ndef score_one(self, state, pod, cluster, row): ...",
            'it has no scope; write `scope = "row"`',
            id="scope",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, cluster): ...\n"
            "def filter_touched(self, state, pod, cluster): ...",
            "has `filter_touched` but not `filter_token`; write `def filter_token(self, pod: PodInfo, cluster: Snapshot)",
            id="touched without token",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod): ...\ndef filter_token(self, pod, cluster): ...",
            "has `filter_token` but neither `pre_filter` nor `filter`",
            id="token of nothing",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod): ...\ndef filter_pattern(self, state): ...",
            "`filter_pattern` lacks cluster; write `def filter_pattern(self, state: CycleState, cluster: Snapshot)",
            id="shape of an optional method",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_enqueue(self, pod): ...\ndef filter_patern(self, state, cluster): ...",
            "`filter_patern` is never called; if `filter_pattern` is meant",
            id="letters of an optional method",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, cluster): ...\nread_template = True",
            "its attribute `read_template` is never read; if `reads_template` is meant, write `reads_template = True`",
            id="letters of a mark",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, cluster): ...\nreads_template = 'yes'",
            "its `reads_template` is 'yes'; write `reads_template = True` in the class, or leave it out",
            id="shape of a mark",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, cluster): ...\ndef by_extremes(self): ...",
            "write `by_extremes = True` in the class, or leave it out",
            id="a method for a mark",
        ),
        pytest.param(
            "name = 'Mine'\ndef pre_filter(self, state, pod, cluster): ...\nby_extremes = True",
            "has `by_extremes` but not `normalize`; write `def normalize(self,",
            id="mark of nothing",
        ),
        pytest.param(
            "name = 'Mine'\ndef __init__(self, a, b): ...\ndef pre_enqueue(self, pod): ...",
            "its constructor must be `def __init__(self)` or `def __init__(self, args)`",
            id="constructor",
        ),
        pytest.param(
            "name = 'Mine'\nclass Args: ...\ndef pre_enqueue(self, pod): ...", "has Args but no constructor", id="Args"
        ),
    ],
)
def test_a_class_that_is_no_plugin_is_refused_with_what_to_write(
    module: Callable[[str], str], body: str, told: str
) -> None:
    path = f"{module('class Mine:' + textwrap.indent(chr(10) + body, '    '))}:Mine"
    assert any(told in fault for fault in faults(profile(path))), faults(profile(path))


def test_an_adapter_without_its_method_is_refused(module: Callable[[str], str]) -> None:
    name = module(GOOD + "\n    class Half(one_at_a_time.ScoreOneNode):\n        name = 'Half'\n")
    assert "derives from ScoreOneNode but has no `score_one`" in faults(profile(f"{name}:Half"))[0]


def test_methods_of_its_own_do_no_harm(module: Callable[[str], str]) -> None:
    name = module(
        """
        class Mine:
            name = "Mine"
            templates = 3
            extremes = (0, 9)
            by_extremes = False

            def pre_enqueue(self, pod, *, hint=None): ...

            def scores(self): ...

            def bound_to(self, node): ...

            def _filter(self, state, pod, cluster, rows): ...
        """
    )
    configuration.load(profile(f"{name}:Mine"))


class Gate:
    """A plugin that a test brings along."""

    name = "Gate"

    def pre_enqueue(self, pod: Any) -> Any:
        """Nobody asks it."""


def test_plugins_can_be_brought_along_as_classes_and_as_instances() -> None:
    text = one_profile(plugins={"preEnqueue": {"enabled": [{"name": "Gate"}]}})
    shared = Gate()
    for extra in (Gate, shared):
        (found,) = configuration.load(text, extra=[extra]).profiles().values()
        assert found.pre_enqueue[-1].name == "Gate"
    assert found.pre_enqueue[-1] is shared
    assert loaded().profiles()


def test_two_plugins_cannot_have_one_name(module: Callable[[str], str]) -> None:
    name = module(GOOD + "\n    class Again(Bare):\n        pass\n")
    enabled = [{"name": f"{name}:Bare"}, {"name": f"{name}:Again"}]
    assert faults(one_profile(plugins={"multiPoint": {"enabled": enabled}})) == ["two plugins are called Bare"]
