"""DefaultPreemption: what would have to go for a pod to fit, and which node that costs least.

- `plugin`       the plugin: who may preempt, the search, what is said
- `lowest_priority`   on which nodes somebody might go at all
- `dry_run`      one node tried out: its victims
- `room_trial`   the same worked out by sums, where only room counts
- `budgets`      which victims would break a disruption budget
- `importance`   which pods matter more
- `choice`       how many nodes are tried, and which is taken
- `hints`, `args`
"""
