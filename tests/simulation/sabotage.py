"""Switches off what prevents violations, one mechanism at a time, in the process of one run: the checker must
see each.

Each names what the checker is to say, and a seed with which it says so soon. Some bring more trouble, or
switch off what is only an optimisation, or what something else covers, which their texts name: then it must
say nothing.
"""

from tests.simulation import (
    sabotaged_clocks,
    sabotaged_judgement,
    sabotaged_nodes,
    sabotaged_queue,
    sabotaged_readers,
    sabotaged_writes,
)
from tests.simulation.sabotaged import Sabotage

SABOTAGES: dict[str, Sabotage] = {
    **sabotaged_writes.SABOTAGES,
    **sabotaged_judgement.SABOTAGES,
    **sabotaged_readers.SABOTAGES,
    **sabotaged_queue.SABOTAGES,
    **sabotaged_clocks.SABOTAGES,
    **sabotaged_nodes.SABOTAGES,
}
