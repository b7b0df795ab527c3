"""The scheduler as pure code: messages in, effects out, the time passed in.

Duty: schedule popped pods over the table, assume at once, number decisions, follow the cluster and the
binder's answers, retry conflicts, say how every attempt ended. Every popped attempt ends in exactly one
result to the queue, or two: scheduled, then a bind error.
Never in here: `await`, a clock, a logger, the bus, telemetry. The stopwatch that is handed in serves the
times of spans and metrics only.

- `messages`     what the core is told
- `effects`      what it wants done
- `backlog`      popped pods that were not looked at yet
- `assumptions`  pods decided and not yet answered, and their numbers
- `measured`     what cycles and attempts took, for metrics
- `records`      the decision record of an attempt
- `spans`        ids and contents of a cycle's spans
- `attempts`     attempts, one at a time; one that asks extenders is a dialogue
- `placing`      cycle, assumption, decision
- `outcomes`     how attempts end, as effects
- `settling`     what became of decided pods
- `requests`     decisions on their way to the binder
- `own_nominations`   nominations decided here and not yet facts
- `clearing`     what a preemption does to others
- `asking_again`  decisions that wait in the binder
- `rehearsals`   where a pod would go, for people
- `holding`      what waits in it and what it counts, for people
- `scheduler`    the core itself
"""
