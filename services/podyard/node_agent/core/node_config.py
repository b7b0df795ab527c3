"""How a node is set up: by its labels, or as all others."""

from collections.abc import Mapping
from typing import Any

import msgspec

from podyard.node_agent.core.eviction.configuration import KubeletConfiguration
from podyard.node_agent.core.eviction.manager import EvictionConfig
from podyard.node_agent.core.images import ImagePolicy


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What of a KubeletConfiguration a virtual node goes by."""

    eviction: EvictionConfig = EvictionConfig()
    images: ImagePolicy = ImagePolicy()
    max_pods: int | None = None
    """Most pods that it takes; None: as many as its object says."""

    @classmethod
    def of(cls, found: KubeletConfiguration) -> "NodeConfig":
        """As a KubeletConfiguration says.

        :raises ThresholdError: with all faults of its thresholds
        """
        return cls(
            eviction=EvictionConfig.of(found),
            images=ImagePolicy(
                high_percent=found.image_gc_high_threshold_percent,
                low_percent=found.image_gc_low_threshold_percent,
                min_age_s=found.image_minimum_gc_age,
                max_age_s=found.image_maximum_gc_age,
            ),
            max_pods=found.max_pods,
        )


class LabelledConfig(msgspec.Struct, frozen=True):
    """The configuration of all nodes that have these labels."""

    labels: dict[str, str]
    config: NodeConfig


class NodeConfigs(msgspec.Struct, frozen=True):
    """The configurations of an agent's nodes."""

    general: NodeConfig = NodeConfig()
    labelled: tuple[LabelledConfig, ...] = ()
    """The first whose labels a node has is the node's."""

    def of(self, labels: Mapping[str, Any]) -> NodeConfig:
        """The configuration of a node with these labels."""
        for one in self.labelled:
            if one.labels.items() <= labels.items():
                return one.config
        return self.general
