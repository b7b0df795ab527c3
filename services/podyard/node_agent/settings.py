"""What can be set of the agent: section `node_agent` of the options file, `PODYARD_NODE_AGENT_*`."""

import contextlib
import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import STALLED_S
from podyard.node_agent.core.eviction import configuration, thresholds, unused
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.manager import MONITORING_INTERVAL_S, EvictionConfig
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.eviction.unused import Unused
from podyard.node_agent.core.host_node import Host
from podyard.node_agent.core.images import PERIOD_S
from podyard.node_agent.core.node_config import LabelledConfig, NodeConfig, NodeConfigs
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.programs import Rules
from podyard.node_agent.core.selection import Selection
from podyard.objects.names import label_value_fault, qualified_fault
from podyard.runtime import leases
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.settings import ServiceSettings, SettingsError

Seconds = Annotated[float, Meta(ge=0)]
PositiveSeconds = Annotated[float, Meta(gt=0)]

LEASE: Final = "node_agent"

MAX_PODS: Final = "maxPods"
_GENERAL: Final = "node_agent.kubelet_config"
_REPLACED: Final = (
    "eviction_hard", "eviction_soft", "eviction_soft_grace_period", "eviction_minimum_reclaim",
    "enforce_node_allocatable", "eviction_pressure_transition_period_s", "eviction_max_pod_grace_period",
    "local_storage_capacity_isolation",
)  # fmt: skip
"""What a KubeletConfiguration says instead."""


_OF_HOST: Final = ("node_cgroup", "host_dir", "runtime", "process_namespaces", "allow_root")
"""What means nothing without `host_node`."""


def _default_hard() -> dict[str, str]:
    return dict(thresholds.DEFAULT_HARD)


class LabelledFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A KubeletConfiguration for some nodes."""

    selector: dict[str, str]
    """Labels that these nodes have."""
    file: str
    """Path of the KubeletConfiguration."""


class NodeAgentSettings(LeaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the `eviction_*` settings are those of a KubeletConfiguration, in snake case."""

    nodes: tuple[str, ...] = ()
    """Names of the nodes it plays; empty: all that are not annotated `podyard.io/agent: external`."""
    node_selector: dict[str, str] = {}
    """Labels that its nodes must have."""
    take_over_after_s: PositiveSeconds = 50.0
    """A node that another agent plays is taken from it after so many seconds without a sign of life. As long
    as `workloads` waits before it calls a node lost; at least 4, and twice `heartbeat_interval_s`."""
    take_over: bool = False
    """Take nodes, and the lease, from whoever has them, once, at the start: for when it is known that the
    other is gone."""

    host_node: str = ""
    """Name of the node that is the machine the agent runs on: it is registered, read, and evicts for real.
    Empty: none is. Without `nodes` it is the only one that the agent plays."""
    node_cgroup: str = ""
    """cgroup whose limit of memory is the capacity of `host_node`, as a path below the mount of cgroups, for
    example `/podyard`; it is made if it is not there. Empty: the whole machine."""
    host_dir: str = "/var/lib/podyard"
    """Where the agent keeps what belongs to `host_node`; its file system is the node's."""
    runtime: Literal["none", "process"] = "none"
    """What pods of `host_node` are: `process` runs the commands of their containers on this machine, `none`
    plays them as those of a virtual node."""
    process_namespaces: tuple[str, ...] = ()
    """Namespaces whose pods run as processes; pods of others are refused."""
    allow_root: bool = False
    """Whether processes of pods may run as root."""

    start_delay_s: Seconds = 0.2
    """How long virtual containers take to start, if the pod does not say. Visible to people, short enough for
    a demo."""
    stop_delay_s: Seconds = 0.2
    """How long they take to end when asked to; never longer than the pod's grace period."""
    job_run_duration_s: Seconds = 5.0
    """How long pods of a Job run before they have succeeded. Others run until they are ended, or as they are
    annotated."""

    heartbeat_interval_s: PositiveSeconds = 10.0
    """Source: the kubelet's nodeLeaseDurationSeconds / 4."""
    linger_s: Seconds = 0.02
    """How long facts wait for company: a batch costs the server 1.2 ms, whatever its size."""

    kubelet_config: str = ""
    """Path of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1). Its eviction fields, its defaults
    included, take the place of those below, and its `maxPods` limits what nodes take."""
    kubelet_configs: tuple[LabelledFile, ...] = ()
    """KubeletConfigurations by node label: the first whose selector a node matches takes the place of all
    else for that node, anew whenever its labels change."""
    eviction_hard: dict[str, str] = msgspec.field(default_factory=_default_hard)
    """Signal -> quantity or percentage. Setting it replaces all defaults."""
    eviction_soft: dict[str, str] = {}
    """The same, of thresholds that have to be met for a grace period."""
    eviction_soft_grace_period: dict[str, str] = {}
    """Signal of a soft threshold -> how long it has to be met, as Go writes durations."""
    eviction_minimum_reclaim: dict[str, str] = {}
    """Signal -> how much more than the threshold is to be free again, quantity or percentage."""
    enforce_node_allocatable: tuple[str, ...] = (thresholds.PODS,)
    """What may not use more than the node's allocatable: `pods` adds the threshold
    `allocatableMemory.available`."""
    eviction_pressure_transition_period_s: Seconds = 300.0
    """How long a pressure condition stays after it was last observed."""
    eviction_max_pod_grace_period: int = 0
    """Longest grace period of softly evicted pods, seconds."""
    local_storage_capacity_isolation: bool = True
    """Whether pods go that use more local storage than their limits."""
    monitoring_interval_s: PositiveSeconds = MONITORING_INTERVAL_S
    """Seconds between two looks of an eviction manager. The kubelet's is fixed."""
    image_gc_period_s: PositiveSeconds = PERIOD_S
    """Seconds between two collections of images by a node itself. The kubelet's are fixed."""
    synchronize_on_signals: bool = True
    """Look at once when fresh signals arrive: who publishes signals wants to see what they do. Off: only at
    the next look, as the kubelet."""

    def selection(self) -> Selection:
        """Which nodes it plays."""
        return Selection(names=frozenset(self.played()), labels=self.node_selector, host=self.host_node)

    def played(self) -> tuple[str, ...]:
        """Names of the nodes that it plays; empty: all that are not another agent's."""
        return self.nodes or ((self.host_node,) if self.host_node else ())

    def host(self) -> Host | None:
        """Which node is the host itself; None: none is."""
        return Host(self.host_node, runs=self.runtime == "process") if self.host_node else None

    def rules(self) -> Rules:
        """Which pods run as processes."""
        return Rules(namespaces=frozenset(self.process_namespaces), allow_root=self.allow_root)

    def pace(self) -> Pace:
        """How fast virtual containers are, unless their pod says otherwise."""
        return Pace(self.start_delay_s, self.job_run_duration_s, self.stop_delay_s)

    def rhythm(self) -> NodeRhythm:
        """When nodes do something by themselves."""
        return NodeRhythm(
            monitoring_s=self.monitoring_interval_s,
            on_signals=self.synchronize_on_signals,
            heartbeat_s=self.heartbeat_interval_s,
            images_s=self.image_gc_period_s,
        )

    def configs(self) -> NodeConfigs:
        """How the nodes are set up.

        :raises SettingsError: with all that is wrong with the thresholds, the files, and who goes by which
        """
        problems: list[str] = []
        general = self._told(problems, self._general)
        labelled = [
            LabelledConfig(one.selector, found)
            for where, one in self._labelled()
            if (found := self._told(problems, lambda where=where, one=one: _config_of(where, one.file))) is not None
        ]
        problems += self._never_chosen()
        if general is None or problems:
            raise SettingsError(tuple(problems))
        return NodeConfigs(general, tuple(labelled))

    def _told(self, problems: list[str], read: Callable[[], NodeConfig]) -> NodeConfig | None:
        try:
            return read()
        except SettingsError as error:
            problems += error.problems
            return None

    def _general(self) -> NodeConfig:
        """That of nodes that no selector takes."""
        found = self.configuration()
        return NodeConfig.of(found) if self.kubelet_config else NodeConfig(eviction=EvictionConfig.of(found))

    def configuration(self) -> KubeletConfiguration:
        """What is said of all nodes that no selector takes.

        :raises SettingsError: with all that is wrong with it
        """
        if self.kubelet_config:
            with _told_of_file(_GENERAL, self.kubelet_config) as document:
                return configuration.valid(configuration.read(document))
        try:
            return configuration.valid(self._as_configuration())
        except ThresholdError as error:
            raise SettingsError(
                tuple(f"node_agent.{_setting(one.field)}: {one.detail}" for one in error.faults)
            ) from error

    def _labelled(self) -> Iterator[tuple[str, LabelledFile]]:
        for position, one in enumerate(self.kubelet_configs):
            yield f"node_agent.kubelet_configs[{position}]", one

    def _never_chosen(self) -> Iterator[str]:
        """What is wrong with the selectors: whom they take, others do not, and somebody has to be left."""
        before: list[tuple[str, dict[str, str]]] = []
        for where, one in self._labelled():
            yield from _label_faults(where, one.selector)
            against = [key for key, value in one.selector.items() if self.node_selector.get(key, value) != value]
            if against:
                yield f"{where}: matches none of the agent's nodes: node_selector asks for another {against[0]}"
                continue
            asked = {key: value for key, value in one.selector.items() if key not in self.node_selector}
            if not asked:
                yield f"{where}: matches all of the agent's nodes: write the file as node_agent.kubelet_config"
                continue
            hidden = next((name for name, earlier in before if earlier.items() <= asked.items()), None)
            if hidden is not None:
                yield f"{where}: never matches: {hidden} takes all of its nodes; put it before that one, or remove it"
            before.append((where, asked))

    def too_impatient(self) -> Iterator[str]:
        """What is wrong with how long it waits before it takes a node: who lives must not seem silent, though
        a heartbeat be lost or a process stand still for a moment."""
        least = max(2 * self.heartbeat_interval_s, 2 * STALLED_S)
        if self.take_over_after_s < least:
            yield (
                f"node_agent.take_over_after_s: {self.take_over_after_s:g} is too short, an agent that lives would"
                f" seem silent: write {least:g} or more, twice heartbeat_interval_s and at least {2 * STALLED_S:g}"
            )

    def contradictory(self) -> Iterator[str]:
        """What is said of a host and cannot hold together."""
        if self.host_node and self.node_selector:
            yield "node_agent.node_selector: with host_node the nodes are named: write node_agent.nodes"
        if self.host_node and self.kubelet_configs:
            yield "node_agent.kubelet_configs: a host goes by one file for all nodes: write node_agent.kubelet_config"
        if self.host_node and self.nodes and self.host_node not in self.nodes:
            yield f"node_agent.nodes: {self.host_node}, the host_node, is not among them: add it, or leave nodes out"
        if not self.host_node:
            default = NodeAgentSettings()
            for name in _OF_HOST:
                if getattr(self, name) != getattr(default, name):
                    yield f"node_agent.{name}: holds for a host only: write node_agent.host_node, the node's name"
        elif self.runtime == "process" and not self.process_namespaces:
            yield "node_agent.process_namespaces: name the namespaces whose pods may run as processes of this machine"
        elif self.runtime == "none" and (self.process_namespaces or self.allow_root):
            name = "process_namespaces" if self.process_namespaces else "allow_root"
            yield f"node_agent.{name}: holds for processes only: write node_agent.runtime: process"

    def documents(self) -> Iterator[tuple[str, Mapping[str, str], dict[str, Any]]]:
        """The KubeletConfigurations by which nodes go, complete: which setting says it, labels of whose
        nodes, and what; that of all other nodes comes first. What the settings alone say names no `maxPods`,
        which is then the node object's own.

        :raises SettingsError: if one cannot be used
        """
        if self.kubelet_config:
            with _told_of_file(_GENERAL, self.kubelet_config) as document:
                yield _GENERAL, {}, configuration.written(document)
        else:
            said = configuration.complete(self.configuration(), {})
            yield "node_agent", {}, {field: value for field, value in said.items() if field != MAX_PODS}
        for where, one in self._labelled():
            with _told_of_file(where, one.file) as document:
                yield where, one.selector, configuration.written(document)

    def unused(self) -> tuple[Unused, ...]:
        """What is set without effect.

        :raises SettingsError: if a file cannot be used
        """
        found: list[Unused] = []
        if self.kubelet_config:
            default = NodeAgentSettings()
            reason = f"{_GENERAL} takes its place"
            changed = [name for name in _REPLACED if getattr(self, name) != getattr(default, name)]
            found += [Unused(f"node_agent.{name}", reason) for name in changed]
            found += _unused_of(_GENERAL, self.kubelet_config, host=bool(self.host_node))
        for where, one in self._labelled():
            found += _unused_of(where, one.file, host=False)
        return tuple(found)

    def _as_configuration(self) -> KubeletConfiguration:
        return KubeletConfiguration(
            eviction_hard=self.eviction_hard,
            eviction_soft=self.eviction_soft,
            eviction_soft_grace_period=self.eviction_soft_grace_period,
            eviction_minimum_reclaim=self.eviction_minimum_reclaim,
            enforce_node_allocatable=self.enforce_node_allocatable,
            eviction_pressure_transition_period=self.eviction_pressure_transition_period_s,
            eviction_max_pod_grace_period=self.eviction_max_pod_grace_period,
            local_storage_capacity_isolation=self.local_storage_capacity_isolation,
        )

    def lease(self) -> str:
        """Name of the lease that keeps agents of one choice of nodes from leading at once. Of choices that
        overlap the claims of nodes decide (`core/claims.py`)."""
        if self.selection().everything:
            return LEASE
        choice = repr((sorted(self.played()), sorted(self.node_selector.items())))
        return f"{LEASE}-{hashlib.sha256(choice.encode()).hexdigest()[:12]}"


def _label_faults(where: str, selector: Mapping[str, str]) -> Iterator[str]:
    """Labels that no node can have."""
    for key, value in selector.items():
        for fault in filter(None, (qualified_fault(key), label_value_fault(value))):
            yield f"{where}.selector[{key}]: no node can have this label: {fault}"


def _config_of(where: str, file: str) -> NodeConfig:
    with _told_of_file(where, file) as document:
        return NodeConfig.of(configuration.valid(configuration.read(document)))


def _unused_of(where: str, file: str, *, host: bool) -> tuple[Unused, ...]:
    with _told_of_file(where, file) as document:
        found = unused.found(document, host=host)
    if where == _GENERAL:
        return found
    return tuple(Unused(f"{where}: {one.field}", one.reason) for one in found)


@contextlib.contextmanager
def _told_of_file(where: str, file: str) -> Generator[Mapping[str, Any]]:
    """What the file says. Whatever is wrong with it becomes a `SettingsError` that names it."""
    told = f"{where}: {file}"
    try:
        yield configuration.document(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError((f"{told}: cannot be read: {error.strerror or error}",)) from error
    except UnicodeDecodeError as error:
        raise SettingsError((f"{told}: is not UTF-8 text",)) from error
    except ThresholdError as error:
        raise SettingsError(tuple(f"{told}: {fault}" for fault in error.faults)) from error


def _setting(field: str) -> str:
    """The setting for a path in a KubeletConfiguration: `eviction_hard[memory.available]` of
    `evictionHard[memory.available]`."""
    name, bracket, entry = field.partition("[")
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) + bracket + entry


def check(process: ServiceSettings, settings: NodeAgentSettings) -> None:
    """Before the agent is started: whether it can evict, lead, and tell a silent agent, as its settings say.

    :raises SettingsError: with everything that is wrong with them
    """
    del process
    problems = [*settings.too_impatient(), *settings.contradictory()]
    try:
        leases.check(settings.lease_times())
    except SettingsError as error:
        problems += error.problems
    try:
        settings.configs()
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(tuple(problems))
