"""Arguments of DynamicResources. Source: pkg/scheduler/apis/config/types_pluginargs.go
(DynamicResourcesArgs)."""

import msgspec

from podyard.objects import go_syntax


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How long allocating devices may take. Durations are texts as Go writes them (`1m30s`)."""

    filter_timeout: str = "10s"
    """For one node in Filter; `0s`: no limit."""
    binding_timeout: str = "10m0s"
    """For devices to be ready in PreBind; at least one second."""

    @property
    def filter_timeout_s(self) -> float:
        """`filter_timeout` in seconds."""
        return go_syntax.parse_duration(self.filter_timeout)

    @property
    def binding_timeout_s(self) -> float:
        """`binding_timeout` in seconds."""
        return go_syntax.parse_duration(self.binding_timeout)
