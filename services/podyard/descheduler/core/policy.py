"""A DeschedulerPolicy, version descheduler/v1alpha2, field by field. Source: pkg/api/v1alpha2/types.go."""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

API_VERSION: Final = "descheduler/v1alpha2"
KIND: Final = "DeschedulerPolicy"

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Seconds: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class PolicyPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of the parts outside plugin arguments: unknown fields are ignored, as the reference does."""


class PluginSet(PolicyPart, frozen=True, kw_only=True):
    """Plugins of one extension point, in the order in which they run. `disabled` has no effect anywhere."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class Plugins(PolicyPart, frozen=True, kw_only=True):
    """Plugins by extension point."""

    pre_sort: PluginSet = msgspec.field(default=PluginSet(), name="presort")
    sort: PluginSet = PluginSet()
    deschedule: PluginSet = PluginSet()
    balance: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    pre_eviction_filter: PluginSet = msgspec.field(default=PluginSet(), name="preevictionfilter")


class PluginConfig(PolicyPart, frozen=True, kw_only=True):
    """Arguments of one plugin. While loading `args` is a JSON value, afterwards the plugin's Struct; None is
    all defaults."""

    name: str = ""
    args: Any = None


class Profile(PolicyPart, frozen=True, kw_only=True):
    """Plugins that share an evictor."""

    name: str = ""
    plugin_config: tuple[PluginConfig, ...] = ()
    plugins: Plugins = Plugins()


class MetricsCollector(PolicyPart, frozen=True, kw_only=True):
    """The old way to switch Kubernetes metrics on."""

    enabled: bool = False


class SecretReference(PolicyPart, frozen=True, kw_only=True):
    """Which secret."""

    namespace: str = ""
    name: str = ""


class AuthToken(PolicyPart, frozen=True, kw_only=True):
    """Where a token is kept."""

    secret_reference: SecretReference | None = None


class Prometheus(PolicyPart, frozen=True, kw_only=True):
    """Where Prometheus is."""

    url: str = ""
    auth_token: AuthToken | None = None


class MetricsProvider(PolicyPart, frozen=True, kw_only=True):
    """Where usage is measured."""

    source: str = ""
    prometheus: Prometheus | None = None


class Policy(PolicyPart, frozen=True, kw_only=True):
    """The whole file. None means that the field was left out."""

    profiles: tuple[Profile, ...] = ()
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: Count | None = None
    max_no_of_pods_to_evict_per_namespace: Count | None = None
    max_no_of_pods_to_evict_total: Count | None = None
    eviction_failure_event_notification: bool | None = None
    metrics_collector: MetricsCollector | None = None
    metrics_providers: tuple[MetricsProvider, ...] = ()
    grace_period_seconds: Seconds | None = None


ExtensionPoint: TypeAlias = Literal["Deschedule", "Balance"]
"""When a plugin runs."""
