"""How subjects are spelled. Nobody else puts a subject together; as patterns they stand also in `catalogue`,
`streams` and the permissions (`cli/security/identities.py`).

A token is percent-encoded, so that dots, wildcards and blanks cannot change a subject's meaning (node names
have dots). `_` stands for "no namespace". An object's subject is `cluster.<resource>.<namespace>.<name>`,
where resource is a plural of the core kinds (`pods`) or an encoded `<plural>.<version>.<group>`.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

NO_NAMESPACE: Final = "_"

LONGEST: Final = 3072
"""Characters of a subject. A protocol line above 4,096 (nats-server's max_control_line), which also names
where to reply, costs the sender its connection. The subject of a pod's status with the longest names has some
1,200."""

KEPT_SUBJECTS: Final = 1024
"""Subjects of objects that are kept spelled: whoever writes an object asks for its subject some six times."""

PODS: Final = "pods"
NODES: Final = "nodes"

POD_STATUS: Final = "podstatus"
NODE_STATUS: Final = "nodestatus"
NODE_LIFE: Final = "nodelife"
NOMINATIONS: Final = "nominations"
QUOTA_USAGE: Final = "quotausage"
POD_SCHEDULED: Final = "podscheduled"
RESERVED_RESOURCES: Final = frozenset({POD_STATUS, NODE_STATUS, NODE_LIFE, NOMINATIONS, QUOTA_USAGE, POD_SCHEDULED})
"""Second tokens of `cluster.` that hold facts, not objects: no resource may be called so."""

ALL_OBJECTS: Final = "cluster.>"
OBJECTS_WITHOUT_FACTS: Final = "cluster.*.*.*"
"""Objects of every kind, without statuses and nominations: only objects have exactly four tokens."""

ALL_POD_STATUS: Final = "cluster.podstatus.>"
ALL_NODE_STATUS: Final = "cluster.nodestatus.>"
ALL_NODE_LIFE: Final = "cluster.nodelife.>"
ALL_FACTS: Final = (ALL_POD_STATUS, ALL_NODE_STATUS, ALL_NODE_LIFE)
"""What is joined to pods and nodes."""
ALL_NOMINATIONS: Final = "cluster.nominations.>"
ALL_QUOTA_USAGE: Final = "cluster.quotausage.>"
ALL_POD_SCHEDULED: Final = "cluster.podscheduled.>"
ALL_BINDINGS: Final = "placement.bindings.>"
ALL_COMMITS: Final = "placement.commits.>"
FENCE: Final = "placement.fence"
CENSUS: Final = "cluster.census"
"""Which messages of CLUSTER lived when it was taken (`census`): of the stream, not of the cluster."""

QUEUE: Final = "svc.queue"
"""Verbs below it: pop, heartbeat, done, activate, preempting (schedulers); list, would (people)."""
SCHEDULER_WOULD: Final = "svc.scheduler.would"
"""For people: where a pod would go. Any scheduler answers."""
BINDER_BIND: Final = "svc.binder.bind"
OBJECTS_APPLY: Final = "svc.objects.apply"
ALL_NODE_APPLIES: Final = "svc.objects.apply.*"
"""`svc.objects.apply` for one node's object alone: what its agent may ask."""
OBJECTS_DELETE: Final = "svc.objects.delete"
ALL_NODE_DELETES: Final = "svc.objects.delete.*"
"""`svc.objects.delete` for deleted pods that have ended on one node: what its agent may ask."""
OBJECTS_EVICT: Final = "svc.objects.evict"
OBJECTS_REVEAL: Final = "svc.objects.reveal"
"""For people: the values of Secrets, which nobody else is told."""

ALL_DECISIONS: Final = "decisions.>"
ALL_REQUEUES: Final = "requeues.>"
ALL_MOVES: Final = "moves.>"
ALL_K8SEVENTS: Final = "k8sevents.>"
ALL_K8SEVENTS_OF_PODS: Final = "k8sevents.*.Pod.*.*"
ALL_BARE_EVENTS: Final = "events.>"
ALL_SIGNALS: Final = "signals.>"
ALL_PREVIEWS: Final = "svc.agents.*.preview"
ALL_HEARTBEATS: Final = "heartbeat.*"
ALL_USAGE: Final = "usage.*"


def encode(token: str) -> str:
    """`token` as one subject token: percent-encoded, the dot too; the empty string becomes `_`."""
    if not token:
        return NO_NAMESPACE
    if token.isascii() and token.replace("-", "").isalnum():
        return token
    encoded = quote(token, safe="-").replace(".", "%2E").replace("~", "%7E")
    return "%5F" if encoded == NO_NAMESPACE else encoded


def decode(token: str) -> str:
    """The text that `encode` made `token` from."""
    if token == NO_NAMESPACE:
        return ""
    return unquote(token) if "%" in token else token


class ObjectKey(NamedTuple):
    """One object's place, as its subject says it: at most one object lives there at a time; its uid tells
    namesakes apart."""

    resource: str
    """Plural of a core kind (`pods`), or `<plural>.<version>.<group>`."""
    namespace: str
    """Empty for cluster-scoped kinds."""
    name: str

    @property
    def namespaced_name(self) -> tuple[str, str]:
        """Namespace and name without the resource."""
        return self.namespace, self.name

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {place}"


class PodSubject(NamedTuple):
    """A fact about one pod: its namespace, name and uid."""

    namespace: str
    name: str
    uid: str


@lru_cache(maxsize=KEPT_SUBJECTS)
def object_(resource: str, namespace: str, name: str) -> str:
    """Subject of one object; `namespace` is empty for cluster-scoped kinds."""
    return f"cluster.{encode(resource)}.{encode(namespace)}.{encode(name)}"


def objects(resource: str, namespace: str | None = None) -> str:
    """Wildcard over the objects of a resource; `None` means every namespace."""
    if namespace is None:
        return f"cluster.{encode(resource)}.>"
    return f"cluster.{encode(resource)}.{encode(namespace)}.*"


def parse_object(subject: str) -> ObjectKey:
    """Take an object's subject apart.

    :raises ValueError: if it is not `cluster.<resource>.<namespace>.<name>` of an object
    """
    parts = subject.split(".")
    if len(parts) != 4 or parts[0] != "cluster" or parts[1] in RESERVED_RESOURCES:
        raise ValueError(f"{subject!r} is not the subject of an object")
    return ObjectKey(decode(parts[1]), decode(parts[2]), decode(parts[3]))


def pod_status(node: str, namespace: str, pod: str, uid: str) -> str:
    """Subject of what `node`'s agent says about a pod."""
    return f"cluster.podstatus.{encode(node)}.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def pod_statuses(node: str) -> str:
    """Wildcard over the pod statuses that one node reports."""
    return f"cluster.podstatus.{encode(node)}.>"


def pod_status_anywhere(namespace: str, pod: str, uid: str) -> str:
    """Wildcard over what the agents of all nodes say about one pod."""
    return f"cluster.podstatus.*.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def any_uid(of: Callable[[str, str, str], str], namespace: str, pod: str) -> str:
    """Wildcard over all pods that are or were called so.

    :param of: the subject of one pod: `binding`, `decisions`, `pod_status_anywhere`; or `quota_usage`
    """
    return f"{of(namespace, pod, 'any').rpartition('.')[0]}.*"


def node_status(node: str) -> str:
    """Subject of what a node's agent says about its node."""
    return f"cluster.nodestatus.{encode(node)}"


def node_life(node: str) -> str:
    """Subject of what `workloads` says about a node of which too little is heard."""
    return f"cluster.nodelife.{encode(node)}"


def nomination(namespace: str, pod: str, uid: str) -> str:
    """Subject of a pod's nominated node."""
    return f"cluster.nominations.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def quota_usage(namespace: str, quota: str, uid: str) -> str:
    """Subject of what is used of a resource quota."""
    return f"cluster.quotausage.{encode(namespace)}.{encode(quota)}.{encode(uid)}"


def pod_scheduled(namespace: str, pod: str, uid: str) -> str:
    """Subject of why a pod is not scheduled."""
    return f"cluster.podscheduled.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def binding(namespace: str, pod: str, uid: str) -> str:
    """Subject of a pod's binding and, afterwards, its tombstone."""
    return f"placement.bindings.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def commit(n: int) -> str:
    """Subject of the record of the n-th commit, n from 1."""
    return f"placement.commits.{n}"


def bindings_in(namespace: str) -> str:
    """Wildcard over the bindings of a namespace's pods."""
    return f"placement.bindings.{encode(namespace)}.>"


def pod_statuses_in(namespace: str) -> str:
    """Wildcard over what agents say of a namespace's pods."""
    return f"cluster.podstatus.*.{encode(namespace)}.>"


def decisions_in(namespace: str) -> str:
    """Wildcard over attempts of a namespace's pods that did not bind."""
    return f"decisions.{encode(namespace)}.>"


def decisions(namespace: str, pod: str, uid: str) -> str:
    """Subject of a pod's attempts that did not bind."""
    return f"decisions.{encode(namespace)}.{encode(pod)}.{encode(uid)}"


def parse_pod(subject: str) -> PodSubject:
    """The pod that a binding, nomination, status or decision is about: always the last three tokens.

    :raises ValueError: if there are fewer than four tokens
    """
    parts = subject.split(".")
    if len(parts) < 4:
        raise ValueError(f"{subject!r} names no pod")
    return PodSubject(decode(parts[-3]), decode(parts[-2]), decode(parts[-1]))


def requeue(event_id: str) -> str:
    """Subject of what one event moved and did not move."""
    return f"requeues.{encode(event_id)}"


def queue_verb(verb: str) -> str:
    """Subject of a request to the queue's leader: `pop`, `heartbeat`, `done`, `activate`, `preempting`,
    `list`, `would`."""
    return f"{QUEUE}.{verb}"


def bare_event(resource: str, action: str) -> str:
    """Subject of an event for experiments: it may requeue, it changes no state."""
    return f"events.{encode(resource)}.{encode(action)}"


def signals(node: str) -> str:
    """Subject of synthetic usage signals for one node."""
    return f"signals.{encode(node)}"


def node_apply(node: str) -> str:
    """Subject of a request to create or replace one node's object."""
    return f"{OBJECTS_APPLY}.{encode(node)}"


def node_delete(node: str) -> str:
    """Subject of a request to remove deleted pods that have ended on one node."""
    return f"{OBJECTS_DELETE}.{encode(node)}"


def parse_node_request(subject: str) -> str:
    """The node that a request on `subject` is about: `node_apply`, `node_delete`."""
    return decode(subject.rpartition(".")[2])


def preview(node: str) -> str:
    """Subject of a request to the agent that plays a node: whom it would evict."""
    return f"svc.agents.{encode(node)}.preview"


def heartbeat(node: str) -> str:
    """Subject of a node's sign of life; not stored."""
    return f"heartbeat.{encode(node)}"


def parse_heartbeat(subject: str) -> str:
    """The node whose sign of life came on `subject`."""
    return decode(subject.rpartition(".")[2])


def usage(node: str) -> str:
    """Subject of a node's usage as its agent measured it; not stored."""
    return f"usage.{encode(node)}"


_EVENT_KINDS: Final = {PODS: "Pod", NODES: "Node"}
"""What events' subjects call these; of others they name the resource."""


def k8s_event(namespace: str, resource: str, name: str, event: str) -> str:
    """Subject of one Kubernetes-like event about an object."""
    return f"{_k8s_events(namespace, resource, name)}.{encode(event)}"


def k8s_events_about(namespace: str, resource: str, name: str) -> tuple[str, str]:
    """All events about an object: those of release 0.1.0, whose subjects name no event, and all others."""
    about = _k8s_events(namespace, resource, name)
    return about, f"{about}.*"


def k8s_events_in(namespace: str) -> str:
    """Wildcard over events about objects of a namespace; the empty one has those that are in none."""
    return f"k8sevents.{encode(namespace)}.>"


def _k8s_events(namespace: str, resource: str, name: str) -> str:
    return f"k8sevents.{encode(namespace)}.{encode(_EVENT_KINDS.get(resource, resource))}.{encode(name)}"


def moves(namespace: str, kind: str, name: str) -> str:
    """Subject of what the descheduler moved of one workload; `kind` as manifests say it."""
    return f"moves.{encode(namespace)}.{encode(kind)}.{encode(name)}"


def moves_in(namespace: str) -> str:
    """Wildcard over those of all workloads of a namespace."""
    return f"moves.{encode(namespace)}.>"


def lease(service: str) -> str:
    """Subject of a service's leader lease."""
    return f"leases.{encode(service)}"


def dead(service: str) -> str:
    """Subject of the dead letters of a service."""
    return f"dead.{encode(service)}"


FOLLOWED_BY_QUEUE_AND_SCHEDULER: Final = (
    objects(PODS),
    objects(NODES),
    ALL_NODE_STATUS,
    ALL_NODE_LIFE,
    ALL_NOMINATIONS,
    objects("priorityclasses"),
    objects("namespaces"),
)
"""Objects that queue, scheduler and binder all follow, besides commits and fence, whatever the plugins; one
list, so that their positions compare. The resources that enabled plugins registered events for come on top,
for all three alike."""
