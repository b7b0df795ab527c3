"""One pod on one node: what the binder asks before it commits.

Gives the answer of the vectorised filter for that node, at the price of one row.
"""

from podyard.framework import prefilter
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import PluginError, Status

NODE_GONE = "node is gone"
"""Reason if the table has no such node."""


def filter_one(profile: Profile, node_name: str, pod: PodInfo, cluster: Snapshot) -> Status:
    """Whether `node_name` takes `pod` now: PreFilter, then every Filter for that node.

    The pod must not be counted in the table already. Decides as `judgement.Judgement` does for that row.

    :return: SUCCESS, or the first rejection with its plugin; ERROR if a plugin failed; UNRESOLVABLE without a plugin if the node is
        not in the table, or PreFilter names other nodes
    """
    state = CycleState()
    row = cluster.nodes.row_of.get(node_name)
    if row is None:
        return statuses.unresolvable(NODE_GONE)
    asked = "PreFilter"
    try:
        found = prefilter.run(profile.pre_filter, state, pod, cluster)
        if not found.status.ok:
            return found.status
        if found.node_names is not None and node_name not in found.node_names:
            return found.absent or statuses.SUCCESS
        for plugin in profile.filter:
            asked = plugin.name
            if asked in state.skip_filter:
                continue
            code = plugin.filter_one(state, pod, cluster, row)
            if code:
                return plugin.verdict(state, code).by(asked)
    except Exception as fault:  # the boundary to plugins: their bugs are an answer, not the binder's end
        error = PluginError.wrapping(asked, "filter", fault)
        return statuses.error(str(error)).by(error.plugin)
    return statuses.SUCCESS
