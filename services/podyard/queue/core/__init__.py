"""The scheduling queue as pure code: calls in, effects out, the time passed in.

Duty: keep every pending pod in exactly one place, retry it when an event may help, never lose an event that came while it
was in flight. Never in here: `await`, a clock, a logger, the bus, telemetry.

- `queued_pod`        one pod and what the queue knows of it
- `backoff`           how long a pod waits after a failed attempt
- `pod_heap`          pods in order, with removal from the middle
- `parked`            unschedulable and gated pods, indexed by the plugins that rejected them
- `in_flight`         pods being scheduled, and the events that came meanwhile
- `nominator`         nodes kept for pods that preempted
- `judge`             asks the queueing hints
- `gates`             PreEnqueue plugins
- `effects`           what the shell has to do or record
- `scheduling_queue`  the queue itself (the reference's PriorityQueue)
- `changes`           from changes of the cluster to calls of the queue (the reference's event handlers)
- `attempts`          open attempts and the sessions that hold them
- `recent`            the last events, for what the safety flush rescued
- `leader`            the protocol: pop, done, heartbeat, activate, preempting
- `restart`           what a new leader starts from
"""
