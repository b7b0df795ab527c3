"""KubeSchedulerConfiguration v1 as it is written.

A field without a default is always written; one with a default is left out when it has that value. Optional
(`| None`) is what Go has a pointer for: None means not given. Durations are texts in Go's own spelling
(`1m0s`).

Sources: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/config/v1/types.go;
component-base/config/v1alpha1/types.go.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from podyard.objects import go_syntax

GROUP: Final = "kubescheduler.config.k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "KubeSchedulerConfiguration"

Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Float32: TypeAlias = Annotated[float, Meta(ge=-3.4028235677973366e38, le=3.4028235677973366e38)]
DURATION: Final = {"duration": True}
Duration: TypeAlias = Annotated[str, Meta(extra=DURATION)]


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of all parts."""


class Plugin(Wire, frozen=True, kw_only=True):
    """A plugin that is enabled or disabled."""

    name: str
    weight: Int32 | None = None


class PluginSet(Wire, frozen=True, kw_only=True):
    """What one extension point has beyond, or without, what comes by default. `*` in `disabled` means all."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Wire, frozen=True, kw_only=True):
    """Plugin sets by extension point; `multi_point` stands for all points that a plugin takes part in."""

    pre_enqueue: PluginSet
    queue_sort: PluginSet
    pre_filter: PluginSet
    filter: PluginSet
    post_filter: PluginSet
    pre_score: PluginSet
    score: PluginSet
    reserve: PluginSet
    permit: PluginSet
    pre_bind: PluginSet
    bind: PluginSet
    post_bind: PluginSet
    multi_point: PluginSet
    placement_generate: PluginSet
    placement_score: PluginSet


class PluginConfig(Wire, frozen=True, kw_only=True):
    """Arguments of a plugin: one of `wire_args`, or whatever was written for a plugin that the reference does
    not know."""

    name: str
    args: Any = None


class Profile(Wire, frozen=True, kw_only=True):
    """Source: KubeSchedulerProfile."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class ManagedResource(Wire, frozen=True, kw_only=True):
    """An extended resource that an extender manages."""

    name: str
    ignored_by_scheduler: bool = False


class TlsConfig(Wire, frozen=True, kw_only=True):
    """Source: ExtenderTLSConfig. Data fields hold PEM, base64 in the file."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(Wire, frozen=True, kw_only=True):
    """An HTTP service that takes part in decisions; an empty verb: it is not asked for that."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TlsConfig | None = None
    http_timeout: Duration
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def http_timeout_s(self) -> float:
        """`http_timeout` in seconds."""
        return go_syntax.parse_duration(self.http_timeout)


class LeaderElection(Wire, frozen=True, kw_only=True):
    """Source: LeaderElectionConfiguration."""

    leader_elect: bool | None
    lease_duration: Duration
    renew_deadline: Duration
    retry_period: Duration
    resource_lock: str
    resource_name: str
    resource_namespace: str


class ClientConnection(Wire, frozen=True, kw_only=True):
    """Source: ClientConnectionConfiguration."""

    kubeconfig: str
    accept_content_types: str
    content_type: str
    qps: Float32
    burst: Int32


class KubeSchedulerConfiguration(Wire, frozen=True, kw_only=True):
    """The whole file."""

    api_version: str = ""
    kind: str = ""
    parallelism: Int32 | None = None
    leader_election: LeaderElection
    client_connection: ClientConnection
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 | None = None
    pod_max_backoff_seconds: Int64 | None = None
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
