"""One pod on one node: what the binder asks before it commits.

Gives the answer of the vectorised filter for that node, nominated pods counted, at the price of one row.
"""

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.pod_info import PodInfo
from podyard.framework.prefilter import PreFiltering
from podyard.framework.profile import Profile
from podyard.framework.row_judge import RowJudge
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError, Status

NODE_GONE = "node is gone"
"""Reason if the table has no such node."""


def filter_one(profile: Profile, node_name: str, pod: PodInfo, cluster: Snapshot) -> Status:
    """Whether `node_name` takes `pod` now: PreFilter, then every Filter for that node.

    The pod must not be counted in the table already. Decides as `feasibility.Feasibility` does for that row.

    :return: SUCCESS, or the first rejection with its plugin; ERROR if a plugin failed; UNRESOLVABLE without a
        plugin if the node is not in the table, or PreFilter names other nodes
    """
    row = cluster.nodes.row_of.get(node_name)
    if row is None:
        return statuses.unresolvable(NODE_GONE)
    state = CycleState()
    try:
        found = PreFiltering(profile.pre_filter, state).run(pod, cluster)
    except PluginError as fault:
        return cluster.failed(fault)
    if not found.status.ok:
        return found.status
    if found.node_names is not None and node_name not in found.node_names:
        return found.absent or statuses.SUCCESS
    return RowJudge(profile, cluster).passes(state, pod, row)
