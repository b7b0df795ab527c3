"""Parts of what stands around a core. A service composes those that it needs; none knows any one service.

Duty: keep a view up to date from the bus; feed a core, in order and on the steady clock, and keep one message
that breaks it from ending the service; write and delete objects by compare-and-set.
Never in here: what messages mean, a decision, a base class, NATS.

Around a core:

- `leading`   who leads: one term after the other, standing by in between
- `driver`    the only caller of a core's `step`, for a term: the timer, what the core asks, its end if it
  raised
- `boundary`  what a process remembers of cores that raised: what is set aside, how long to pause, readiness
- `causes`    what a core was told when it raised
- `tickets`   requests in hand, which a core answers at once or much later

Beside a core:

- `asking`    requests that are sent again until they are answered, by the leader of the highest epoch
- `counting`  what a core counts for metrics, taken by many
- `records`   records that are stored in the background
- `event_recorder`  events for people: `event_correlator` says which are worth a message, `event_outbox` how
  many are sent
- `debugging`  pages and SIGUSR2: what waits, what is counted; `comparison` with what the stream says

Reading:

- `reading`    an informer with its health check, and what the garbage collector is told
- `hearing`    whether we hear the bus, for who counts the silence of others
- `folds`      several views on one informer
- `informer`   keeps a view up to date from the bus
- `set_aside`  stored messages that views see without their payload
- `snapshot`   a view of one moment
- `stream_reading`  listing and following streams of records

Writing:

- `writes`    create, update, mark as deleting, remove
- `door_requests`  requests to the api, sent again while nobody answers
- `charging`  the same of what quotas count, in one batch with what is used then
- `mending`   what takes the place of a placement that cannot be read
"""
