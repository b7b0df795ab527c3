"""How fast nodes that are not ready may be given up, zone by zone: where many fall silent at once, the
network is to blame rather than they.

A zone is fully disrupted if none of its nodes is ready, partially if more than two and 55 % are not. Nodes
are tainted NoExecute at 0.1 a second in each zone; in a partially disrupted one at 0.01, or not at all if it
has at most 50 nodes. If all zones are fully disrupted, nobody is given up: what was tainted is let go
(docs/rules.md, where-all-is-silent-nobody-is-given-up).

Source: kubernetes v1.36.2, pkg/controller/nodelifecycle/node_lifecycle_controller.go (handleDisruption,
ComputeZoneState, setLimiterInZone), scheduler/rate_limited_queue.go, component-helpers/node/topology
(GetZoneKey).
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from podyard.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE

EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""Label of nodes that do not count when the state of their zone is judged."""
ALWAYS_TOLERABLE: Final = 2
"""So many nodes that are not ready never make a zone partially disrupted."""

State: TypeAlias = Literal["initial", "normal", "partial", "full"]


class Rates(NamedTuple):
    """Nodes a second, and where they change. Source: pkg/controller/nodelifecycle/config/v1alpha1, and
    cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go."""

    usual: float = 0.1
    reduced: float = 0.01
    large: int = 50
    """Nodes of a zone above which a partial disruption slows down, and does not stop."""
    unhealthy: float = 0.55
    """Share of nodes that are not ready from which on a zone is partially disrupted."""


def zone_of(labels: Mapping[str, str]) -> str:
    """The zone and region of a node; empty if it names neither."""
    zone = labels[BETA_ZONE] if BETA_ZONE in labels else labels.get(ZONE, "")
    region = labels[BETA_REGION] if BETA_REGION in labels else labels.get(REGION, "")
    return f"{region}:\0:{zone}" if zone or region else ""


class Bucket:
    """A token bucket of one token, full at first. Source: client-go/util/flowcontrol/throttle.go."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._full_at = now

    def next_at(self) -> float:
        """When there is a token; infinite if never."""
        return self._full_at if self.rate > 0 else float("inf")

    def take(self, now: float) -> bool:
        """Take the token, if there is one."""
        if self.next_at() > now:
            return False
        self._full_at = now + 1 / self.rate
        return True

    def become(self, rate: float, now: float) -> None:
        """Go on at another rate; who had to wait waits anew. Source: SwapLimiter."""
        if rate != self.rate:
            waits = not self.take(now)
            self.rate = rate
            self._full_at = now + 1 / rate if waits and rate > 0 else now


class Zone:
    """One zone: its state, and the nodes that wait for their taint."""

    def __init__(self, rate: float, now: float) -> None:
        self.state: State = "initial"
        self.bucket = Bucket(rate, now)
        self.waiting: dict[str, None] = {}
        """Names, who waits longest first."""


class Zones:
    """All zones that have nodes. Owned by one core."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._zones: dict[str, Zone] = {}

    def states(self) -> Mapping[str, State]:
        """By zone."""
        return {key: zone.state for key, zone in self._zones.items()}

    def keep(self, keys: Iterable[str], now: float) -> None:
        """These are the zones that have nodes."""
        kept = set(keys)
        for key in [key for key in self._zones if key not in kept]:
            del self._zones[key]
        for key in kept:
            if key not in self._zones:
                self._zones[key] = Zone(self._rates.usual, now)

    def wait(self, key: str, node: str) -> None:
        """A node is not ready, and not tainted yet."""
        self._zones[key].waiting[node] = None

    def leave(self, key: str, node: str) -> None:
        """A node is ready, or gone."""
        if key in self._zones:
            self._zones[key].waiting.pop(node, None)

    def due(self, now: float) -> list[str]:
        """Nodes that may be tainted now; they wait no more."""
        found: list[str] = []
        for zone in self._zones.values():
            while zone.waiting and zone.bucket.take(now):
                node = next(iter(zone.waiting))
                del zone.waiting[node]
                found.append(node)
        return found

    def next_at(self) -> float:
        """When the next node that waits may be tainted; infinite if none ever."""
        return min((zone.bucket.next_at() for zone in self._zones.values() if zone.waiting), default=float("inf"))

    def judge(self, ready: Mapping[str, tuple[int, int]], now: float) -> Literal["", "entered", "left"]:
        """Set states and rates by how many nodes are ready, and not, in each zone.

        :param ready: zones of which any node counts
        :return: whether the disruption of all zones began, or ended, with this
        """
        before = [self._zones[key].state for key in ready]
        after: dict[str, State] = {key: self._state(*counts) for key, counts in ready.items()}
        was_full = all(state == "full" for state in before)
        is_full = all(state == "full" for state in after.values())
        if not ready or (was_full and is_full):
            return ""
        for key, state in after.items():
            zone = self._zones[key]
            zone.state = state
            zone.bucket.become(0.0 if is_full else self._rate(state, sum(ready[key])), now)
        return "entered" if is_full else "left" if was_full else ""

    def _state(self, ready: int, not_ready: int) -> State:
        if not ready and not_ready:
            return "full"
        if not_ready > ALWAYS_TOLERABLE and not_ready / (not_ready + ready) >= self._rates.unhealthy:
            return "partial"
        return "normal"

    def _rate(self, state: State, nodes: int) -> float:
        if state != "partial":
            return self._rates.usual
        return self._rates.reduced if nodes > self._rates.large else 0.0
