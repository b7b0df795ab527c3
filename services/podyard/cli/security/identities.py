"""Who may publish and listen to what. Pure; the one table from which servers' configurations and tests are
made.

Inside CORE the permissions stop mistakes; what keeps EDGE out of CORE are the accounts (`accounts`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from podyard.node_agent.settings import NodeAgentSettings
from podyard.proto import streams, subjects

CORE: Final = "CORE"
EDGE: Final = "EDGE"
READ: Final = "READ"
SYSTEM: Final = "SYS"

ADMIN: Final = "admin"
"""Makes the streams, and may do anything in CORE; no service runs as it."""
MIRRORS: Final = "mirrors"
"""Makes the mirrors, and may do anything in READ."""
OPERATOR: Final = "operator"
"""Looks after the servers, in the system account."""
PERSON: Final = "person"
BRIDGE: Final = "bridge"
ALL_NODES: Final = "node_agent"
"""The agent that plays every node, as the lab has it. A node's own agent is made with `agent`."""

READ_API: Final = "JS.read.API"
"""What EDGE writes for `$JS.API`: the JetStream of READ. `$JS.API` itself would be asked twice, in EDGE and
in READ."""

MIRROR_CONSUMER: Final = "mirror"
READABLE: Final = ("CLUSTER", "DECISIONS", "REQUEUES", "MOVES", "K8SEVENTS", "DEAD")
"""Streams that EDGE reads mirrors of."""

_MIRRORS_OWN: Final = (
    f"$JS.FC.*.{MIRROR_CONSUMER}.>",
    f"$JS.API.CONSUMER.CREATE.*.{MIRROR_CONSUMER}",
    f"$JS.API.CONSUMER.DELETE.*.{MIRROR_CONSUMER}",
)
"""What readers may not do to the consumers of the mirrors."""

_SCHEDULER_VERBS: Final = ("pop", "heartbeat", "done", "activate", "preempting")
_READING_VERBS: Final = ("list", "would")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """One user of NATS. `publishes` without `denied`; `subscribes` without the inbox, which every identity
    has of its own."""

    name: str
    account: str
    publishes: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    responds: bool = False
    """Whether it may answer whatever request it was sent."""
    nodes: tuple[str, ...] = ()
    """Of a node's own agent: the only nodes it may report about."""
    inbox_name: str = ""
    """Second token of its reply subjects, if not its name."""
    service: str = ""
    """Whose dead letters it writes, if not those of its name."""

    @property
    def inbox(self) -> str:
        """Prefix of its reply subjects."""
        return f"_INBOX.{subjects.encode(self.inbox_name or self.name)}"

    @property
    def jetstream(self) -> str:
        """What it writes for `$JS.API`."""
        return READ_API if self.account == EDGE else "$JS.API"


def all_identities(agents: Mapping[str, Sequence[str]] | None = None) -> tuple[Identity, ...]:
    """Every identity of an installation.

    :param agents: node agents of their own: name -> nodes that it plays, at least one
    """
    own = (agent(name, nodes) for name, nodes in (agents or {}).items())
    return (*core(), *administrators(), *edge(), *own)


def core() -> tuple[Identity, ...]:
    """The services in CORE."""
    return (
        _service(
            "api",
            ("cluster.*.*.*", subjects.ALL_QUOTA_USAGE, *_reading("CLUSTER")),
            denied=(*subjects.ALL_FACTS, subjects.ALL_NOMINATIONS),
            subscribes=(
                subjects.OBJECTS_APPLY,
                subjects.ALL_NODE_APPLIES,
                subjects.OBJECTS_DELETE,
                subjects.ALL_NODE_DELETES,
                subjects.OBJECTS_EVICT,
                subjects.OBJECTS_REVEAL,
            ),
        ),
        _service(
            "kube_api",
            (
                subjects.OBJECTS_APPLY,
                subjects.OBJECTS_DELETE,
                subjects.OBJECTS_EVICT,
                subjects.OBJECTS_REVEAL,
                subjects.ALL_POD_SCHEDULED,
                subjects.BINDER_BIND,
                *_reading("CLUSTER", "DECISIONS", "K8SEVENTS"),
            ),
            subscribes=(subjects.ALL_USAGE,),
        ),
        _service(
            "queue",
            (
                subjects.ALL_NOMINATIONS,
                subjects.ALL_DECISIONS,
                subjects.ALL_REQUEUES,
                "$JS.API.STREAM.PURGE.DECISIONS",
                *_reading("CLUSTER", "DECISIONS"),
                *_lease("queue"),
            ),
            subscribes=(f"{subjects.QUEUE}.*", subjects.ALL_BARE_EVENTS, subjects.lease("queue")),
        ),
        _service(
            "scheduler",
            (
                *map(subjects.queue_verb, _SCHEDULER_VERBS),
                subjects.BINDER_BIND,
                subjects.ALL_DECISIONS,
                _kind(subjects.PODS),
                *_reading("CLUSTER"),
            ),
            subscribes=(subjects.SCHEDULER_WOULD,),
        ),
        _service(
            "binder",
            (
                "placement.>",
                *map(_kind, ("persistentvolumes", "persistentvolumeclaims", "resourceclaims")),
                *_reading("CLUSTER"),
                *_lease("binder"),
            ),
            subscribes=(subjects.BINDER_BIND, subjects.lease("binder")),
        ),
        _service(
            "descheduler",
            (
                subjects.OBJECTS_EVICT,
                subjects.ALL_MOVES,
                *_reading("CLUSTER", "MOVES"),
                *_lease("descheduler"),
            ),
            subscribes=(subjects.lease("descheduler"), subjects.ALL_USAGE),
        ),
        _service(
            # its garbage collection removes dependents of any kind, its census taker whatever came back
            "workloads",
            (subjects.ALL_OBJECTS, *_reading("CLUSTER"), *_lease("workloads")),
            denied=(subjects.ALL_POD_SCHEDULED,),
            subscribes=(subjects.lease("workloads"), subjects.ALL_HEARTBEATS),
        ),
    )


def administrators() -> tuple[Identity, ...]:
    """Who makes streams and mirrors, and looks after servers."""
    return (
        Identity(name=ADMIN, account=CORE, publishes=(">",), subscribes=(">",)),
        Identity(name=MIRRORS, account=READ, publishes=(">",), subscribes=(">",)),
        Identity(name=OPERATOR, account=SYSTEM, publishes=(">",), subscribes=(">",)),
    )


def edge() -> tuple[Identity, ...]:
    """People, bridges, and the agent of every node."""
    return (
        _visitor(PERSON, "cli", (subjects.ALL_PREVIEWS, subjects.OBJECTS_REVEAL)),
        _visitor(BRIDGE, "bridge"),
        _agent(
            ALL_NODES,
            (
                *(subjects.ALL_POD_STATUS, "cluster.nodestatus.*", subjects.ALL_HEARTBEATS, subjects.ALL_USAGE),
                subjects.ALL_NODE_DELETES,
            ),
            (),
        ),
    )


def agent(name: str, nodes: Sequence[str]) -> Identity:
    """The agent of these nodes and no others; its identity is called `agent-<name>`. It may register them."""
    own = [
        subject
        for node in nodes
        for subject in (
            subjects.pod_statuses(node),
            subjects.node_status(node),
            subjects.heartbeat(node),
            subjects.usage(node),
            subjects.node_apply(node),
            subjects.node_delete(node),
        )
    ]
    return _agent(f"agent-{name}", tuple(own), tuple(nodes))


def exported_by_core() -> tuple[str, ...]:
    """Subjects of CORE to which EDGE may publish at all; its users' permissions narrow them."""
    return (
        *_written_by_people(),
        subjects.OBJECTS_REVEAL,
        subjects.ALL_NODE_APPLIES,
        subjects.ALL_NODE_DELETES,
        subjects.ALL_BARE_EVENTS,
        subjects.ALL_POD_STATUS,
        "cluster.nodestatus.*",
        subjects.ALL_HEARTBEATS,
        subjects.ALL_USAGE,
        subjects.ALL_K8SEVENTS,
        *map(subjects.dead, ("cli", BRIDGE, "node_agent")),
    )


def exported_by_read() -> tuple[str, ...]:
    """Requests to READ's JetStream that EDGE may make, and the agents' leases, which only agents read."""
    return (*_reading(*READABLE), "$JS.API.DIRECT.GET.LEASES.>", "leases.*")


def _service(
    name: str, publishes: tuple[str, ...], *, denied: tuple[str, ...] = (), subscribes: tuple[str, ...] = ()
) -> Identity:
    own = (subjects.dead(name), subjects.ALL_K8SEVENTS)
    return Identity(
        name=name,
        account=CORE,
        publishes=(*publishes, *own),
        denied=(*denied, *_MIRRORS_OWN),
        subscribes=(*subscribes, "$SRV.>"),
        responds=True,
    )


def _visitor(name: str, service: str, asked: tuple[str, ...] = ()) -> Identity:
    """:param asked: what it may ask besides, of agents and of the api"""
    published = (*asked, *_written_by_people(), subjects.ALL_BARE_EVENTS, subjects.ALL_SIGNALS, subjects.dead(service))
    return Identity(
        name=name,
        account=EDGE,
        publishes=(*published, *_reading_mirrors(*READABLE)),
        denied=_MIRRORS_OWN[:1],
        subscribes=(subjects.ALL_BARE_EVENTS,),
        inbox_name=service,
        service=service,
    )


def _agent(name: str, facts: tuple[str, ...], nodes: tuple[str, ...]) -> Identity:
    previews = tuple(map(subjects.preview, nodes)) or (subjects.ALL_PREVIEWS,)
    heartbeats = tuple(map(subjects.heartbeat, nodes)) or (subjects.ALL_HEARTBEATS,)
    lease = subjects.lease(NodeAgentSettings(nodes=nodes).lease())
    published = (lease, f"{READ_API}.DIRECT.GET.LEASES.{lease}", subjects.dead("node_agent"), *_news(nodes))
    return Identity(
        name=name,
        account=EDGE,
        publishes=(*facts, *published, *_reading_mirrors("CLUSTER")),
        denied=_MIRRORS_OWN[:1],
        subscribes=(*previews, *heartbeats, subjects.ALL_SIGNALS, lease, "$SRV.>"),
        responds=True,
        nodes=nodes,
        service="node_agent",
    )


def _news(nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Events that an agent may send: about pods, and about its own nodes."""
    if not nodes:
        return (subjects.ALL_K8SEVENTS,)
    about_nodes = (subjects.k8s_events_about("", subjects.NODES, node)[1] for node in nodes)
    return (subjects.ALL_K8SEVENTS_OF_PODS, *about_nodes)


def _written_by_people() -> tuple[str, ...]:
    objects = (subjects.OBJECTS_APPLY, subjects.OBJECTS_DELETE, subjects.OBJECTS_EVICT)
    return (*objects, *map(subjects.queue_verb, _READING_VERBS), subjects.SCHEDULER_WOULD)


def _reading(*names: str) -> tuple[str, ...]:
    """What a reader of these streams asks: consumers of its own, single messages, how the stream stands."""
    return tuple(subject for name in names for subject in _reading_one(name))


def _reading_one(stream: str) -> tuple[str, ...]:
    return (
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.INFO.{stream}.*",
        f"$JS.API.CONSUMER.DELETE.{stream}.*",
        f"$JS.API.DIRECT.GET.{stream}.>",
        f"$JS.FC.{stream}.>",
    )


def _reading_mirrors(*names: str) -> tuple[str, ...]:
    return tuple(subject.replace("$JS.API", READ_API, 1) for subject in _reading(*names))


def _lease(service: str) -> tuple[str, ...]:
    lease = subjects.lease(service)
    return lease, f"$JS.API.DIRECT.GET.{streams.LEASES.name}.{lease}"


def _kind(resource: str) -> str:
    """The objects of one kind: exactly four tokens."""
    return f"cluster.{subjects.encode(resource)}.*.*"
