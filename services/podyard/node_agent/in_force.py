"""What an agent runs by: the KubeletConfigurations of its nodes, and the thresholds that they come to."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from podyard.node_agent.core.eviction.thresholds import Limit, Threshold
from podyard.node_agent.settings import MAX_PODS, NodeAgentSettings
from podyard.objects import go_syntax
from podyard.runtime import leases
from podyard.runtime.service import Effective
from podyard.runtime.settings import ServiceSettings

SECTION: Final = "kubeletconfig"
"""What the kubelet v1.36.2 calls its configuration on /configz (cmd/kubelet/app/server.go)."""
LABELLED: Final = "kubeletconfigs"
THRESHOLDS: Final = "thresholds"


def in_force(process: ServiceSettings, settings: NodeAgentSettings) -> Effective:
    """
    :raises SettingsError: if a file cannot be used
    """
    del process
    general, *labelled = settings.documents()
    found = settings.configs()
    configs = (found.general, *(one.config for one in found.labelled))
    said_by = [where for where, _, _ in (general, *labelled)]
    documents: dict[str, Any] = {
        SECTION: general[2],
        LABELLED: [{"setting": where, "selector": selector, **said} for where, selector, said in labelled],
        THRESHOLDS: {
            where: list(_rows(config.eviction.thresholds)) for where, config in zip(said_by, configs, strict=True)
        },
    }
    return Effective(leases.filled_in(settings), documents, remarks=tuple(_remarks(settings, len(labelled))))


def _rows(thresholds: Sequence[Threshold]) -> Iterator[dict[str, str]]:
    for one in thresholds:
        row = {"signal": one.signal, "operator": "LessThan", "value": _text(one.value)}
        if not one.hard:
            row["gracePeriod"] = go_syntax.duration_text(one.grace_s)
        if one.min_reclaim is not None:
            row["minReclaim"] = _text(one.min_reclaim)
        yield row


def _text(limit: Limit) -> str:
    return limit.quantity if limit.fraction is None else f"{limit.fraction * 100:g}%"


def _remarks(settings: NodeAgentSettings, labelled: int) -> Iterator[str]:
    """What a file with the first of the documents does not say."""
    if not settings.kubelet_config:
        yield (
            f"nodes that go by this file take 110 pods unless it says {MAX_PODS};"
            " without a file they take as many as their objects say"
        )
    if labelled:
        yield f"node_agent.kubelet_configs stay as they are: {labelled} more, for nodes with other labels"
