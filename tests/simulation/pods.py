"""The mix of pods: what they request, and what they want of nodes, of each other and of volumes."""

from random import Random
from typing import Any, NamedTuple

from tests.simulation.hesitating import LABEL
from tests.simulation.storage import Storage
from tests.support import objects

Document = dict[str, Any]

CPUS = ("100m", "250m", "500m", "1", "2", "3")
WEIGHTS = (3, 4, 6, 8, 7, 4)
"""With these the nodes are about full, so that pods wait for room, and some preempt."""


class Shares(NamedTuple):
    """Which part of all pods wants what; the rest wants nothing but room."""

    alone: float = 0.08
    """No other of its kind on the node."""
    even: float = 0.08
    """Spread evenly over zones."""
    together: float = 0.06
    """In a zone where others of its kind are."""
    ports: float = 0.08
    """One of two host ports."""
    disk: float = 0.08
    """A node with a certain label."""
    own_volume: float = 0.06
    """A local volume, found when it is placed."""
    shared_volume: float = 0.03
    """The same, a claim of several pods."""
    one_pod_volume: float = 0.03
    """The same, one pod at a time."""
    made_volume: float = 0.04
    """A volume that is made for it where it is placed."""
    attached: float = 0.08
    """A volume of which nodes can have a few only."""
    hesitating: float = 0.06
    """To wait before it is bound."""
    huge: float = 0.02
    """More than any node has."""
    placed: float = 0.02
    """A node that its creator chose."""


NOTHING_SPECIAL = Shares(*(0.0 for _ in Shares._fields))
"""Pods that want room only."""

TEAMS = 4
"""Groups of pods that want to be in one zone."""


def pod(random: Random, serial: int, nodes: int, storage: Storage, shares: Shares) -> Document:
    """One pod of the mix, as its creator writes it; makes the claim that it uses."""
    container: Document = {"name": "c", "image": "x"}
    container["resources"] = {"requests": {"cpu": random.choices(CPUS, WEIGHTS)[0], "memory": "64Mi"}}
    spec: Document = {"containers": [container], "priority": random.choice((0, 0, 0, 0, 10, 100))}
    name, app = f"p{serial}", f"app{random.randrange(6)}"
    labels: dict[str, str] = {}
    match _kind(random, shares):
        case "alone":
            app = f"alone{random.randrange(3)}"
            spec["affinity"] = {"podAntiAffinity": _near("kubernetes.io/hostname", app)}
        case "even":
            app = f"even{random.randrange(2)}"
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }
            ]
        case "together":
            app = f"team{random.randrange(TEAMS)}"
            spec["affinity"] = {"podAffinity": _near("topology.kubernetes.io/zone", app)}
        case "ports":
            container["ports"] = [{"containerPort": 80, "hostPort": random.choice((8080, 9090)), "protocol": "TCP"}]
        case "disk":
            spec["nodeSelector"] = {"disk": "ssd"}
        case "own_volume":
            spec["volumes"] = _volume(storage.claim(f"of-{name}"))
        case "shared_volume":
            spec["volumes"] = _volume(storage.claim(f"shared{random.randrange(3)}"))
        case "one_pod_volume":
            spec["volumes"] = _volume(storage.claim(f"single{random.randrange(3)}", one_pod=True))
        case "made_volume":
            spec["volumes"] = _volume(storage.made_claim(f"of-{name}"))
        case "hesitating":
            labels[LABEL] = "yes"
        case "attached":
            spec["volumes"] = _volume(storage.attached_claim(f"of-{name}"))
        case "huge":
            container["resources"]["requests"]["cpu"] = "64"
        case "placed":
            spec["nodeName"] = f"n{random.randrange(nodes)}"
            container["resources"]["requests"]["cpu"] = "100m"
        case _:
            pass
    if "volumes" in spec:
        container["resources"]["requests"]["cpu"] = "100m"  # what volumes allow shall decide
    spec["schedulerName"] = "default-scheduler"
    return objects.pod(name, uid=f"uid-{serial}", labels={"app": app, **labels}, **spec)


def _kind(random: Random, shares: Shares) -> str:
    drawn = random.random()
    for kind, share in shares._asdict().items():
        drawn -= share
        if drawn < 0:
            return kind
    return ""


def _near(key: str, app: str) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def _volume(claim: str) -> list[Document]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
