"""The scheduling queue as pure code: messages in, effects out, the time passed in.

Duty: keep every pending pod in exactly one place, retry it when an event may help, never lose an event that
came while it was in flight. Never in here: `await`, a clock, a logger, the bus, telemetry.

- `queue`             one term: `step(message, now) -> effects`
- `messages`          what it is told
- `effects`           what it wants done
- `requests`          answers what schedulers and people ask
- `waiting_pops`      pops that found nothing yet
- `queued_pod`        one pod and what the queue knows of it
- `pool_moves`        from which pool to which a pod may go
- `backoff`           how long a pod waits after a failed attempt
- `pod_heap`          pods in order, with removal from the middle
- `parked`            unschedulable and gated pods, indexed by the plugins that rejected them
- `in_flight`         pods being scheduled, and the events that came meanwhile
- `nominator`         nodes kept for pods that preempted
- `hints`             asks the queueing hints
- `mates`             pods of one kind whose rules look at each other
- `waking`            which parked pods an event is for, and what the hints say of them
- `gates`             PreEnqueue plugins
- `scheduling_queue`  the queue itself (the reference's PriorityQueue)
- `changes`           from changes of the cluster to calls of the queue (the reference's event handlers)
- `attempts`          open attempts and the sessions that hold them
- `recent`            the last events, for what the safety flush rescued
- `leader`            the protocol: pop, done, heartbeat, activate, preempting
- `given_up`          what a scheduler had promised a pod and promises no more
- `tally`             what is counted for metrics
- `thinning`          which of many equal failures of a pod have a trace
- `rescues`           what only the safety flush brought onto a node
- `recorded`          which pods have records that go with them
- `once`              ids of bare events that have happened
- `listing`           what is where, for people
- `outside`           pods that are in no pool, for people
- `what_if`           what an event would do, for people
- `restart`           what a new leader starts from
"""
