"""Arguments of NodeAffinity. Source: pkg/scheduler/apis/config/types_pluginargs.go (NodeAffinityArgs)."""

import msgspec

from podyard.objects.affinity import NodeAffinity


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """`added_affinity` applies to all pods of the profile, on top of their own; None adds nothing."""

    added_affinity: NodeAffinity | None = None
