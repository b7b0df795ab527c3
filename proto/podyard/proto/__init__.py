"""The bus is the API: every message, subject and stream of Podyard, declared once.

Duty: say what travels between the services, in which shape, on which subject, kept by which stream.
Never in here: behaviour, I/O, Kubernetes object types (objects travel as `msgspec.Raw`), any import but
msgspec and the standard library.

Modules, by topic:

- `message`     the base of every message, and whole numbers
- `bounds`      how large the parts of messages may be that come from outside
- `actions`     the action types of a cluster event (bit values of kube-scheduler v1.36)
- `traces`      what a traceparent says to those who only look at it
- `headers`     NATS headers that Podyard reads or writes
- `subjects`    how subjects are spelled and taken apart
- `streams`     which JetStream streams exist and with which settings
- `events`      ClusterEvent (an object as its creator wrote it), BareEvent (an experiment)
- `facts`       PodStatusFact, NodeStatusFact, NodeLifeFact, Nomination, QuotaUsageFact,
                PodScheduledFact
- `census`      Census: what lived in the stream
- `placement`   Binding, Tombstone, CommitRecord, Fence
- `decisions`   AttemptRecord: what one attempt found
- `requeues`    RequeueRecord: what one event moved and did not move
- `moves`       MoveRecord: what the descheduler moved, and what came of it
- `pools`       where the queue may have a pod
- `queue_api`, `scheduler_api`, `binder_api`, `objects_api`, `agents_api`  requests and replies
- `signals`     synthetic usage, heartbeats
- `operations`  Lease, DeadLetter, K8sEvent
- `catalogue`   every message with its subject: schema, golden bytes and documents are made from it
- `schema`      makes the schemas and documents
- `spellings`   values as an earlier release wrote them
- `codec`       one typed encoder and decoder a message
- `placement_reading`  a pod's binding: that of its subject, or it cannot be read
"""
