"""Pods of one kind whose rules look at each other: who places one of them must know where the others went."""

from podyard.objects.core import Pod


def are_mates(one: Pod, other: Pod) -> bool:
    """Whether two pods are of one kind, and that kind has affinity or spreading: as a workload makes them,
    from one template."""
    spec, others = one.spec, other.spec
    if spec.affinity is None and not spec.topology_spread_constraints:
        return False
    return (
        one.metadata.labels == other.metadata.labels
        and one.metadata.namespace == other.metadata.namespace
        and spec.affinity == others.affinity
        and spec.topology_spread_constraints == others.topology_spread_constraints
    )
