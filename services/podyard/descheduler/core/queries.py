"""What is to be measured before a cycle begins, and asked of Prometheus."""

from collections.abc import Iterator

from podyard.descheduler.core.metrics_providers import KUBERNETES, PROMETHEUS, wants_kubernetes
from podyard.descheduler.core.plugins import low_node_utilization
from podyard.descheduler.core.plugins.low_node_utilization import LowNodeUtilizationArgs, MetricsUtilization
from podyard.descheduler.core.policy import Policy, Prometheus


def provider(policy: Policy) -> Prometheus | None:
    """Where Prometheus is; None: the policy names none."""
    return next((one.prometheus for one in policy.metrics_providers if one.source == PROMETHEUS), None)


def asked(policy: Policy) -> tuple[str, ...]:
    """The queries of plugins that are enabled, each once; none without a provider."""
    if provider(policy) is None:
        return ()
    return tuple(
        dict.fromkeys(
            one.prometheus.query
            for one in _sources(policy)
            if not one.metrics_server and one.source == PROMETHEUS and one.prometheus
        )
    )


def goes_by_agents(policy: Policy) -> bool:
    """Whether a plugin that is enabled goes by what node agents say."""
    return wants_kubernetes(policy) and any(one.metrics_server or one.source == KUBERNETES for one in _sources(policy))


def _sources(policy: Policy) -> Iterator[MetricsUtilization]:
    """Of plugins that are enabled."""
    for profile in policy.profiles:
        if low_node_utilization.NAME not in profile.plugins.balance.enabled:
            continue
        config = next((one for one in profile.plugin_config if one.name == low_node_utilization.NAME), None)
        if config and isinstance(config.args, LowNodeUtilizationArgs) and config.args.metrics_utilization is not None:
            yield config.args.metrics_utilization
