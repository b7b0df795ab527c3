"""A policy's metrics providers: what is wrong with them, and which it asks for. Sources:
pkg/descheduler/policyconfig.go, validateDeschedulerConfiguration; pkg/descheduler/descheduler.go."""

from collections import Counter
from typing import Final
from urllib.parse import urlsplit

from podyard.descheduler.core.policy import Policy, Prometheus

KUBERNETES: Final = "KubernetesMetrics"
PROMETHEUS: Final = "Prometheus"


def wants_kubernetes(policy: Policy) -> bool:
    """Whether usage as Kubernetes measures it is to be had in cycles: by a provider, or in the old way."""
    collector = policy.metrics_collector
    return (collector is not None and collector.enabled) or any(
        one.source == KUBERNETES for one in policy.metrics_providers
    )


def faults(policy: Policy) -> list[str]:
    """All faults, in document order."""
    found: list[str] = []
    counts: Counter[str] = Counter()
    for provider in policy.metrics_providers:
        if counts[provider.source]:
            found.append(
                f'metric provider "{provider.source}" is already configured, each source can be configured only once'
            )
        counts[provider.source] += 1
    if counts[KUBERNETES] and policy.metrics_collector is not None and policy.metrics_collector.enabled:
        found.append("it is not allowed to combine metrics provider when metrics collector is enabled")
    for provider in policy.metrics_providers:
        if provider.source == PROMETHEUS:
            found += _prometheus_faults(provider.prometheus)
            break
    return found


def _prometheus_faults(prometheus: Prometheus | None) -> list[str]:
    if prometheus is None:
        return ["prometheus configuration is required when prometheus source is enabled"]
    if not prometheus.url:
        return ["prometheus URL is required when prometheus is enabled"]
    problem = _url_problem(prometheus.url)
    if problem:
        return [f'error parsing prometheus URL: parse "{prometheus.url}": {problem}']
    token = prometheus.auth_token
    if token is None:
        return []
    if token.secret_reference is None:
        return ["prometheus authToken secret is expected to be set when authToken field is"]
    if not token.secret_reference.namespace or not token.secret_reference.name:
        return ["prometheus authToken secret reference does not set both namespace and name"]
    return []


def _url_problem(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0]
    if authority.startswith("[") and "]" not in authority:
        return "missing ']' in host"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    return ""
