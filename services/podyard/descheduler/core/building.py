"""From a policy to profiles with plugins, made anew for every cycle.

Source: pkg/framework/profile/profile.go, NewProfile; data in tests/conformance/data/policy (stage build).
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from podyard.descheduler.core import loading, triggers
from podyard.descheduler.core.errors import Fault, PolicyError
from podyard.descheduler.core.framework import (
    BalancePlugin,
    DeschedulePlugin,
    FilterPlugin,
    Handle,
    Plugin,
    PluginError,
    PluginFault,
    PreEvictionFilterPlugin,
    Verdict,
)
from podyard.descheduler.core.loading import Loaded
from podyard.descheduler.core.policy import Policy, Profile
from podyard.descheduler.core.state import CycleState
from podyard.framework.status import described, told
from podyard.objects import label_text
from podyard.objects.errors import LabelTextError
from podyard.objects.pod import Pod
from podyard.objects.selectors import Selector

MOST_FAULTS: Final = 256
"""Of filters in one cycle that are told; semi-arbitrary."""


class ProfileEvictor:
    """The filters of one profile, asked in order; the first that refuses decides."""

    def __init__(self) -> None:
        self.filters: list[FilterPlugin] = []
        self.pre_eviction_filters: list[PreEvictionFilterPlugin] = []
        self.faults: deque[PluginFault] = deque(maxlen=MOST_FAULTS)
        """Filters that failed; the pods that they were asked about stay."""

    def filter(self, pod: Pod) -> Verdict:
        """Whether the pod may be considered."""
        return self._first_refusal([(plugin.NAME, "Filter", plugin.filter) for plugin in self.filters], pod)

    def pre_eviction_filter(self, pod: Pod) -> Verdict:
        """Whether it may go now."""
        asked = [(plugin.NAME, "PreEvictionFilter", plugin.pre_eviction_filter) for plugin in self.pre_eviction_filters]
        return self._first_refusal(asked, pod)

    def _first_refusal(self, asked: Iterable[tuple[str, str, Callable[[Pod], Verdict]]], pod: Pod) -> Verdict:
        """A filter that cannot say whether a pod may go keeps it where it is."""
        for plugin, point, ask in asked:
            try:
                verdict = ask(pod)
                if type(verdict) is not Verdict or type(verdict.allowed) is not bool:
                    raise PluginError(f"answered {type(verdict).__name__}, not a Verdict")
            except Exception as fault:  # the boundary to plugins
                self.faults.append(PluginFault(plugin, point, described(fault)))
                return Verdict(False, (f"plugin {plugin} failed in {point}: {described(fault)}",))
            if not verdict.allowed:
                return verdict
        return Verdict(True)


class BuiltProfile(NamedTuple):
    """One profile, ready to run."""

    name: str
    evictor: ProfileEvictor
    deschedule: tuple[DeschedulePlugin, ...]
    balance: tuple[BalancePlugin, ...]


def node_selector(policy: Policy) -> Selector:
    """The nodes that the policy is about.

    :raises PolicyError: if the text is no selector
    """
    try:
        return label_text.parse(policy.node_selector or "")
    except LabelTextError as error:
        raise PolicyError("build", (Fault("nodeSelector", str(error)),)) from error


def build(policy: Policy, plugins: Mapping[str, type[Plugin]], state: CycleState, now: float) -> list[BuiltProfile]:
    """The profiles in the order of the policy.

    :raises PolicyError: for the first profile or plugin that cannot be built
    """
    node_selector(policy)
    return [_Builder(profile, plugins).build(state, now) for profile in policy.profiles]


def usable(text: str, plugins: Mapping[str, type[Plugin]]) -> Loaded:
    """The policy in `text`, if a descheduler can run by it; priority classes are looked up in each cycle.

    :param plugins: that come with Podyard, by name
    :raises PolicyError: with every fault of the stage that failed
    """
    found = loading.checked(text, plugins)
    told = faults(loading.with_defaults(found.policy, None), found.plugins)
    if told:
        raise PolicyError("build", told)
    return found


def faults(policy: Policy, plugins: Mapping[str, type[Plugin]]) -> list[Fault]:
    """All that keeps profiles from being made of a policy, told before there is a cluster: plugins are made
    once with an empty one. The reference makes them when it starts, and stops at the first fault.

    :param policy: of stage default
    """
    told: list[Fault] = []
    try:
        node_selector(policy)
    except PolicyError as error:
        told += error.faults
    for at, profile in enumerate(policy.profiles):
        told += [Fault(f"profiles[{at}]", sentence) for sentence in _Builder(profile, plugins).faults()]
    return list(dict.fromkeys(told))


_POINTS: Final = (
    ("deschedule", "deschedule"),
    ("balance", "balance"),
    ("filter", "filter"),
    ("pre_eviction_filter", "preEvictionFilter"),
)
"""Extension points with plugins: field of `Plugins`, which is also the method of a plugin that has it, and
name in sentences."""


class _Builder:
    def __init__(self, profile: Profile, plugins: Mapping[str, type[Plugin]]) -> None:
        self._profile = profile
        self._plugins = plugins
        self._made: dict[str, Plugin] = {}

    def build(self, state: CycleState, now: float) -> BuiltProfile:
        for fault in self._missing():
            raise fault
        evictor = ProfileEvictor()
        handle = Handle(state, evictor, now)
        listed = self._profile.plugins
        evictor.filters = [cast("FilterPlugin", self._plugin(name, handle)) for name in listed.filter.enabled]
        evictor.pre_eviction_filters = [
            cast("PreEvictionFilterPlugin", self._plugin(name, handle)) for name in listed.pre_eviction_filter.enabled
        ]
        return BuiltProfile(
            self._profile.name,
            evictor,
            tuple(cast("DeschedulePlugin", self._plugin(name, handle)) for name in listed.deschedule.enabled),
            tuple(cast("BalancePlugin", self._plugin(name, handle)) for name in listed.balance.enabled),
        )

    def faults(self) -> list[str]:
        """All of this profile."""
        told = list(self._missing())
        handle = Handle(CycleState(nodes=(), pods=()), ProfileEvictor(), 0.0)
        for name in dict.fromkeys(name for field, _ in _POINTS for name in self._enabled(field)):
            try:
                if name in self._plugins:
                    self._plugin(name, handle)
                    self._registrations(name)
            except PolicyError as error:
                told.append(error)
        return [fault for error in told for fault in error.errors]

    def _missing(self) -> Iterator[PolicyError]:
        """Extension points at which a plugin is enabled that does not exist, or does not have the point."""
        for field, name in _POINTS:
            wrong = sorted({one for one in self._enabled(field) if not self._has(one, field)})
            if wrong:
                shown = " ".join(f"{one}:{{}}" for one in wrong)
                sentence = f"configures {name} extension point of non-existing plugins: map[{shown}]"
                yield self._failed(f'profile "{self._profile.name}" {sentence}')

    def _enabled(self, field: str) -> tuple[str, ...]:
        return getattr(self._profile.plugins, field).enabled

    def _has(self, name: str, method: str) -> bool:
        plugin = self._plugins.get(name)
        return plugin is not None and callable(getattr(plugin, method, None))

    def _plugin(self, name: str, handle: Handle) -> Plugin:
        made = self._made.get(name)
        if made is not None:
            return made
        config: Any = next((one for one in self._profile.plugin_config if one.name == name), None)
        if config is None:
            raise self._failed(f'unable to build {name} plugin: unable to find "{name}" plugin config')
        try:
            plugin = self._plugins[name](config.args, handle)
        except ValueError as error:
            raise self._failed(
                f'unable to build {name} plugin: unable to initialize "{name}" plugin: {told(str(error))}'
            ) from error
        except Exception as error:  # the boundary to plugins
            raise self._failed(
                f'unable to build {name} plugin: unable to initialize "{name}" plugin: {described(error)}'
            ) from error
        self._made[name] = plugin
        return plugin

    def _registrations(self, name: str) -> None:
        """
        :raises PolicyError: if the plugin cannot say what it wants to hear of
        """
        args: Any = next((one.args for one in self._profile.plugin_config if one.name == name), None)
        try:
            triggers.registrations(self._plugins[name], args)
        except Exception as error:  # the boundary to plugins
            raise self._failed(f"unable to register events of {name} plugin: {described(error)}") from error

    def _failed(self, sentence: str) -> PolicyError:
        return PolicyError("build", (f'unable to create "{self._profile.name}" profile: {sentence}',))
