"""Arguments of NodeResourcesBalancedAllocation.

Source: pkg/scheduler/apis/config/types_pluginargs.go (NodeResourcesBalancedAllocationArgs).
"""

import msgspec

from podyard.plugins.node_resources_fit.args import ResourceSpec


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The resources whose shares are to be alike, each once; all weights are 1."""

    resources: tuple[ResourceSpec, ...] = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))
