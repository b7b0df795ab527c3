"""What is to be asked of Prometheus before a cycle begins."""

from podyard.descheduler.core.metrics_providers import PROMETHEUS
from podyard.descheduler.core.plugins import low_node_utilization
from podyard.descheduler.core.plugins.low_node_utilization import LowNodeUtilizationArgs
from podyard.descheduler.core.policy import Policy, Prometheus


def provider(policy: Policy) -> Prometheus | None:
    """Where Prometheus is; None: the policy names none."""
    return next((one.prometheus for one in policy.metrics_providers if one.source == PROMETHEUS), None)


def asked(policy: Policy) -> tuple[str, ...]:
    """The queries of plugins that are enabled, each once; none without a provider."""
    if provider(policy) is None:
        return ()
    found: dict[str, None] = {}
    for profile in policy.profiles:
        if low_node_utilization.NAME not in profile.plugins.balance.enabled:
            continue
        config = next((one for one in profile.plugin_config if one.name == low_node_utilization.NAME), None)
        metrics = (
            config.args.metrics_utilization if config and isinstance(config.args, LowNodeUtilizationArgs) else None
        )
        if metrics is not None and not metrics.metrics_server and metrics.source == PROMETHEUS and metrics.prometheus:
            found[metrics.prometheus.query] = None
    return tuple(found)
