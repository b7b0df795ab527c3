"""What can be set of the agent: section `node_agent` of the options file, `PODYARD_NODE_AGENT_*`."""

import contextlib
import hashlib
import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from podyard.node_agent.core.annotations import Pace
from podyard.node_agent.core.claims import STALLED_S
from podyard.node_agent.core.eviction import configuration, thresholds, unused
from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.manager import MONITORING_INTERVAL_S, EvictionConfig
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.node_agent.core.eviction.unused import Unused
from podyard.node_agent.core.nodes import NodeRhythm
from podyard.node_agent.core.selection import Selection
from podyard.runtime.settings import ServiceSettings, SettingsError

Seconds = Annotated[float, Meta(ge=0)]
PositiveSeconds = Annotated[float, Meta(gt=0)]

LEASE: Final = "node_agent"

_REPLACED: Final = (
    "eviction_hard", "eviction_soft", "eviction_soft_grace_period", "eviction_minimum_reclaim",
    "enforce_node_allocatable", "eviction_pressure_transition_period_s", "eviction_max_pod_grace_period",
    "local_storage_capacity_isolation",
)  # fmt: skip
"""What a KubeletConfiguration says instead."""


def _default_hard() -> dict[str, str]:
    return dict(thresholds.DEFAULT_HARD)


class NodeAgentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    included, take the place of those below."""
    eviction_hard: dict[str, str] = msgspec.field(default_factory=_default_hard)
    """Signal -> quantity or percentage. Setting it replaces all defaults."""
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_minimum_reclaim: dict[str, str] = {}
    enforce_node_allocatable: tuple[str, ...] = (thresholds.PODS,)
    eviction_pressure_transition_period_s: Seconds = 300.0
    """How long a pressure condition stays after it was last observed."""
    eviction_max_pod_grace_period: int = 0
    """Longest grace period of softly evicted pods, seconds."""
    local_storage_capacity_isolation: bool = True
    """Whether pods go that use more local storage than their limits."""
    monitoring_interval_s: PositiveSeconds = MONITORING_INTERVAL_S
    """Seconds between two looks of an eviction manager. The kubelet's is fixed."""
    synchronize_on_signals: bool = True
    """Look at once when fresh signals arrive: who publishes signals wants to see what they do. Off: only at
    the next look, as the kubelet."""

    def selection(self) -> Selection:
        """Which nodes it plays."""
        return Selection(names=frozenset(self.nodes), labels=self.node_selector)

    def pace(self) -> Pace:
        """How fast virtual containers are, unless their pod says otherwise."""
        return Pace(self.start_delay_s, self.job_run_duration_s, self.stop_delay_s)

    def rhythm(self) -> NodeRhythm:
        """When nodes do something by themselves."""
        return NodeRhythm(
            monitoring_s=self.monitoring_interval_s,
            on_signals=self.synchronize_on_signals,
            heartbeat_s=self.heartbeat_interval_s,
        )

    def eviction(self) -> EvictionConfig:
        """The eviction managers' configuration.

        :raises SettingsError: with all that is wrong with the thresholds, or with the file
        """
        if self.kubelet_config:
            with self._told_of_file():
                return EvictionConfig.of(configuration.valid(configuration.read(self._document())))
        try:
            return EvictionConfig.of(configuration.valid(self._as_configuration()))
        except ThresholdError as error:
            raise SettingsError(
                tuple(f"node_agent.{_setting(one.field)}: {one.detail}" for one in error.faults)
            ) from error

    def too_impatient(self) -> Iterator[str]:
        """What is wrong with how long it waits before it takes a node: who lives must not seem silent, though
        a heartbeat be lost or a process stand still for a moment."""
        least = max(2 * self.heartbeat_interval_s, 2 * STALLED_S)
        if self.take_over_after_s < least:
            yield (
                f"node_agent.take_over_after_s: {self.take_over_after_s:g} is too short, an agent that lives would"
                f" seem silent: write {least:g} or more, twice heartbeat_interval_s and at least {2 * STALLED_S:g}"
            )

    def unused(self) -> tuple[Unused, ...]:
        """What is set without effect.

        :raises SettingsError: if the file cannot be used
        """
        if not self.kubelet_config:
            return ()
        default = NodeAgentSettings()
        reason = "node_agent.kubelet_config takes its place"
        replaced = [
            Unused(f"node_agent.{name}", reason) for name in _REPLACED if getattr(self, name) != getattr(default, name)
        ]
        with self._told_of_file():
            return (*replaced, *unused.found(self._document()))

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

    def _document(self) -> Mapping[str, Any]:
        return configuration.document(Path(self.kubelet_config).read_text(encoding="utf-8"))

    @contextlib.contextmanager
    def _told_of_file(self) -> Generator[None]:
        """Whatever is wrong with the file becomes a `SettingsError` that names it."""
        where = f"node_agent.kubelet_config: {self.kubelet_config}"
        try:
            yield
        except OSError as error:
            raise SettingsError((f"{where}: cannot be read: {error.strerror or error}",)) from error
        except UnicodeDecodeError as error:
            raise SettingsError((f"{where}: is not UTF-8 text",)) from error
        except ThresholdError as error:
            raise SettingsError(tuple(f"{where}: {fault}" for fault in error.faults)) from error

    def lease(self) -> str:
        """Name of the lease that keeps agents of one choice of nodes from leading at once. Of choices that
        overlap the claims of nodes decide (`core/claims.py`)."""
        if self.selection().everything:
            return LEASE
        choice = repr((sorted(self.nodes), sorted(self.node_selector.items())))
        return f"{LEASE}-{hashlib.sha256(choice.encode()).hexdigest()[:12]}"


def _setting(field: str) -> str:
    """The setting for a path in a KubeletConfiguration: `eviction_hard[memory.available]` of
    `evictionHard[memory.available]`."""
    name, bracket, entry = field.partition("[")
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) + bracket + entry


def check(process: ServiceSettings, settings: NodeAgentSettings) -> None:
    """Before the agent is started: whether it can evict, and tell a silent agent, as its settings say.

    :raises SettingsError: with everything that is wrong with them
    """
    del process
    problems = list(settings.too_impatient())
    try:
        settings.eviction()
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(tuple(problems))
