"""Plugins of the user in a policy: found by their path, checked before anything is asked of them, run like
all others."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from podyard.descheduler.core import building, loading, own_plugins, registry
from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.evictions import Eviction
from podyard.descheduler.core.loading import Loaded
from podyard.descheduler.core.state import CycleState
from tests.support.failing import FAULTS
from tests.support.user_modules import module
from tests.unit.descheduler.make import node, pod, run_loaded

__all__ = ["module"]

GOOD = """
    from podyard.descheduler.core.arguments import PluginArgs
    from podyard.descheduler.core.framework import Evict, Verdict

    class Args(PluginArgs, frozen=True, kw_only=True):
        first_letter: str = "w"

    class Letter:
        NAME = "Letter"
        ARGS = Args

        def __init__(self, args, handle):
            self.args, self.handle = args, handle

        @classmethod
        def faults(cls, args):
            return [] if len(args.first_letter) == 1 else ["firstLetter: must be one letter"]

        def wanted(self):
            for one in list(self.handle.state.pods.values()):
                if one.metadata.name.startswith(self.args.first_letter) and self.handle.evictor.filter(one).allowed:
                    yield Evict(one, "a letter")

        def deschedule(self, nodes):
            yield from self.wanted()

    class Balanced(Letter):
        NAME = "Balanced"
        deschedule = None

        def balance(self, nodes):
            yield from self.wanted()

    class Keeper(Letter):
        NAME = "Keeper"
        deschedule = None

        def filter(self, pod):
            return Verdict(not pod.metadata.name.startswith(self.args.first_letter), ("kept",))

        def pre_eviction_filter(self, pod):
            return Verdict(True)
"""


def text(configs: dict[str, Any], *, profile: str = "p", **points: list[str]) -> str:
    """A policy with these plugins and arguments, enabled at these points."""
    return json.dumps(
        {
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": [
                {
                    "name": profile,
                    "pluginConfig": [{"name": name, "args": args} for name, args in configs.items()],
                    "plugins": {point: {"enabled": names} for point, names in points.items()},
                }
            ],
        }
    )


def loaded(policy: str) -> Loaded:
    return loading.checked(policy, registry.by_name())


def faults(policy: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as raised:
        loaded(policy)
    return raised.value.errors


def cycle(policy: str) -> tuple[CycleRecord, list[str]]:
    """Over two nodes with the pods `web` and `api`; the names of those that go."""

    def names(asked: list[Eviction]) -> list[str]:
        return [one.pod.metadata.name for one in asked]

    found = loaded(policy)
    assert building.faults(loading.with_defaults(found.policy, None), found.plugins) == []
    state = CycleState(nodes=[node("n1"), node("n2")], pods=[pod("web", "n1"), pod("api", "n2")])
    record, asked = run_loaded(found, state)
    return record, names(asked)


@pytest.mark.parametrize(("cls", "point"), [("Letter", "deschedule"), ("Balanced", "balance")])
def test_a_class_is_found_by_its_path_and_run(module: Callable[[str], str], cls: str, point: str) -> None:
    path = f"{module(GOOD)}:{cls}"
    record, names = cycle(text({path: {}}, **{point: [path]}))
    assert names == ["web"]
    assert [(step.plugin, step.error) for step in record.steps] == [(cls, "")]
    assert cycle(text({path: {"firstLetter": "a"}}, **{point: [path]}))[1] == ["api"]


def test_a_filter_of_the_user_is_asked_with_the_evictor(module: Callable[[str], str]) -> None:
    name = module(GOOD)
    plugin, keeper = f"{name}:Letter", f"{name}:Keeper"
    configs = {plugin: {}, keeper: {}}
    assert cycle(text(configs, deschedule=[plugin]))[1] == ["web"]
    assert cycle(text(configs, deschedule=[plugin], filter=[keeper], preevictionfilter=[keeper]))[1] == []


def test_arguments_are_checked_as_those_of_other_plugins(module: Callable[[str], str]) -> None:
    path = f"{module(GOOD)}:Letter"
    assert faults(text({path: {"letter": "w"}})) == ('profiles[0].pluginConfig[0].args: unknown field "letter"',)
    assert faults(text({path: {"firstLetter": "we"}})) == ("in profile p: firstLetter: must be one letter",)


def test_all_plugins_that_cannot_be_loaded_are_told_at_once(module: Callable[[str], str]) -> None:
    name = module(GOOD + "\n    number = 5\n")
    broken = module("raise OSError('no disk')")
    configs = {f"{name}:Leter": {}, "nowhere.at_all:Plugin": {}, f"{name}:number": {}, "a b:C": {}}
    assert faults(text(configs, profile="mine", deschedule=[f"{broken}:Plugin"], filter=[f"{name}:Args"])) == (
        (
            f"in profile mine: plugin {name}:Leter: module {name} has no Leter; "
            "classes in it: Args, Balanced, Keeper, Letter"
        ),
        (
            "in profile mine: plugin nowhere.at_all:Plugin: there is no module nowhere; "
            "install it, or put its directory on PYTHONPATH"
        ),
        f"in profile mine: plugin {name}:number: is no class, but an int",
        "in profile mine: plugin a b:C: is no path of a class; write `package.module:Class`",
        f"in profile mine: plugin {broken}:Plugin: its module cannot be imported: OSError: no disk",
        *(
            f"in profile mine: plugin {name}:Args: {fault}"
            for fault in (
                'it has no NAME; write `NAME = "Args"` in the class',
                "its ARGS are no PluginArgs; write `ARGS = ...` with a class derived from PluginArgs",
                "it cannot check its arguments; write `@classmethod`, `def faults(cls, args) -> list[str]`",
                "its constructor must be `def __init__(self, args, handle)`",
                "it has the method of no extension point; there are deschedule, balance, filter, pre_eviction_filter",
            )
        ),
    )


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        (
            "def descedule(self, nodes): yield",
            (
                "its method `descedule` is never called; if `deschedule` is meant, write "
                "`def deschedule(self, nodes: list[Node]) -> Generator[Evict, Answer, None]`, "
                "if it is a part of its own, call it `_descedule`"
            ),
        ),
        (
            "def balance(self): yield",
            "`balance` lacks nodes; write `def balance(self, nodes: list[Node]) -> Generator[Evict, Answer, None]`",
        ),
        (
            "async def filter(self, pod): return None",
            (
                "`filter` must be an ordinary function, without async and yield; write "
                "`def filter(self, pod: Pod) -> Verdict`"
            ),
        ),
        (
            "def is_better(self, pod): return None",
            "`is_better` lacks target; write `def is_better(self, pod: Pod, target: Target) -> Verdict`",
        ),
    ],
)
def test_methods_are_compared_with_the_extension_points(module: Callable[[str], str], method: str, fault: str) -> None:
    name = module(f"{GOOD}\n    class Wrong(Letter):\n        NAME = 'Wrong'\n        {method}\n")
    assert faults(text({f"{name}:Wrong": {}})) == (f"in profile p: plugin {name}:Wrong: {fault}",)


def test_two_plugins_of_one_name_are_refused(module: Callable[[str], str]) -> None:
    name = module(f"{GOOD}\n    class Evictor(Letter):\n        NAME = 'DefaultEvictor'\n")
    assert faults(text({f"{name}:Evictor": {}})) == (
        f"in profile p: plugin {name}:Evictor: its NAME DefaultEvictor is that of DefaultEvictor; names must differ",
    )


@pytest.mark.parametrize("plugin", registry.PLUGINS)
def test_the_plugins_that_come_with_podyard_keep_to_it(plugin: type) -> None:
    assert own_plugins.faults(plugin) == []


def failing(method: str, fault: str) -> str:
    return f"""{GOOD}
    from tests.support.failing import FAULTS

    class Failing(Letter):
        NAME = "Failing"

        def {method}:
            FAULTS["{fault}"]()
    """


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", ["deschedule", "balance"])
def test_one_that_raises_ends_its_step_and_no_other(module: Callable[[str], str], point: str, fault: str) -> None:
    name = module(failing(f"{point}(self, nodes)", fault))
    path, other = f"{name}:Failing", f"{name}:{'Letter' if point == 'deschedule' else 'Balanced'}"
    record, names = cycle(text({path: {}, other: {}}, **{point: [path, other]}))
    assert names == ["web"]
    assert [bool(step.error) for step in record.steps] == [True, False]
    assert [one.plugin for one in record.faults] == ["Failing"]


@pytest.mark.parametrize("fault", FAULTS)
def test_one_that_cannot_be_made_is_told_before_the_start(module: Callable[[str], str], fault: str) -> None:
    name = module(failing("__init__(self, args, handle)", fault))
    found = loaded(text({f"{name}:Failing": {}, f"{name}:Letter": {}}, deschedule=[f"{name}:Failing", "None"]))
    told = [one.sentence for one in building.faults(loading.with_defaults(found.policy, None), found.plugins)]
    assert len(told) == 2
    assert "configures deschedule extension point of non-existing plugins: map[None:{}]" in told[0]
    assert f'unable to initialize "{name}:Failing" plugin' in told[1]


@pytest.mark.parametrize("fault", FAULTS)
def test_arguments_that_cannot_be_read_or_completed_are_an_error_of_the_policy(
    module: Callable[[str], str], fault: str
) -> None:
    def of(method: str, args: dict[str, str]) -> str:
        name = module(f"""{GOOD}
    from tests.support.failing import FAULTS

    class Own(Args, frozen=True, kw_only=True):
        def {method}(self):
            if self.first_letter == "x":
                FAULTS["{fault}"]()
            return self

    class Failing(Letter):
        NAME = "Failing"
        ARGS = Own
    """)
        return text({f"{name}:Failing": args})

    with pytest.raises(PolicyError) as raised:
        loaded(of("__post_init__", {"firstLetter": "x"}))
    assert raised.value.errors[0].startswith("profiles[0].pluginConfig[0].args: ")
    with pytest.raises(PolicyError, match="Failing cannot complete its arguments"):
        loading.with_defaults(loaded(of("completed", {"firstLetter": "x"})).policy, None)
