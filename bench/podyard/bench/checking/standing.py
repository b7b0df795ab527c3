"""Who is on which node, and how many of them somebody selects."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import NamedTuple

from podyard.bench.checking.history import Document, Nodes
from podyard.bench.checking.selecting import claims, namespace, required
from podyard.objects import quantity
from podyard.objects.documents import content, mapping


class Placed(NamedTuple):
    """A pod on a node."""

    uid: str
    pod: Document
    node: str
    gone: bool = False
    """Its object is deleted, its binding still takes room."""
    bound: Mapping[str, int] | None = None
    """What its binding says that it takes: what counts once its object is gone. Until then its object counts,
    which may be resized."""
    unknown: bool = False
    """It has been written again since: nobody can read what it was."""

    def takes(self) -> Counter[str]:
        """What it takes from its node now."""
        if self.gone and self.bound is not None:
            return Counter({"pods": 1, **self.bound})
        return requests(self.pod)


def requests(pod: Document) -> Counter[str]:
    """What a pod takes: cpu in milli-CPU, others whole."""
    found: Counter[str] = Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        for name, amount in mapping(container, "resources", "requests").items():
            found[name] += quantity.milli(amount) if name == "cpu" else quantity.value(amount)
    return found


def repelling_kinds(pod: Document) -> dict[str, Document]:
    """Terms of its required anti-affinity. Of pods that have the same, all keep away the same."""
    return {f"{namespace(pod)} {content(term)}": term for term in required(pod, "podAntiAffinity")}


class Repelling(NamedTuple):
    """Pods of a namespace that have a term of required anti-affinity."""

    term: Document
    owners: dict[str, Placed]
    """By uid."""


class Tally:
    """How many pods of a kind are on each node, and in each domain."""

    def __init__(self, counts: Callable[[Placed], bool]) -> None:
        self._counts = counts
        self._on: Counter[str] = Counter()
        self._domains: dict[Hashable, tuple[Mapping[str, str], Counter[str]]] = {}
        """Of the nodes, and how many there are in each domain."""
        self._of: Nodes | None = None

    def add(self, one: Placed, number: int) -> None:
        """So many more (or fewer) such pods, if it is of this kind."""
        if not self._counts(one):
            return
        self._on[one.node] += number
        for values, counts in self._domains.values():
            if one.node in values:
                counts[values[one.node]] += number

    def by_domain(self, label: str, nodes: Nodes) -> Counter[str]:
        """By the values that a label has on the nodes."""
        return self.by(label, nodes.values(label), nodes)

    def by(self, kind: Hashable, values: Mapping[str, str], nodes: Nodes) -> Counter[str]:
        """By domains.

        :param kind: the same for the same domains of these nodes
        :param values: domains of those of the nodes that count
        """
        if self._of is not nodes:
            self._of, self._domains = nodes, {}
        if kind not in self._domains:
            counts: Counter[str] = Counter()
            for node, number in self._on.items():
                if node in values:
                    counts[values[node]] += number
            self._domains[kind] = values, counts
        return self._domains[kind][1]


class Standing:
    """Pods on nodes, of which it is known at once who is on which node and how many somebody selects."""

    def __init__(self) -> None:
        self._placed: dict[str, Placed] = {}
        self._on: dict[str, dict[str, Placed]] = defaultdict(dict)
        self._taken: dict[str, Counter[str]] = defaultdict(Counter)
        self._took: dict[str, Counter[str]] = {}
        self._tallies: dict[Hashable, Tally] = {}
        self.repelling: dict[str, Repelling] = {}
        """By namespace and term."""
        self.unknown: set[str] = set()
        """Uids of those of whom it is not known what they were."""
        self.users: Counter[tuple[str, str]] = Counter()
        """Of claims, by namespace and name."""

    def __iter__(self) -> Iterator[Placed]:
        return iter(self._placed.values())

    def put(self, one: Placed) -> None:
        """A pod is on a node, in the place of what was known of it."""
        self.drop(one.uid)
        self._placed[one.uid] = self._on[one.node][one.uid] = one
        took = self._took[one.uid] = one.takes()
        self._taken[one.node].update(took)
        if one.unknown:
            self.unknown.add(one.uid)
        for kind, term in repelling_kinds(one.pod).items():
            self.repelling.setdefault(kind, Repelling(term, {})).owners[one.uid] = one
        self._count(one, 1)

    def drop(self, uid: str) -> None:
        """It is on no node any more."""
        one = self._placed.pop(uid, None)
        if one is None:
            return
        del self._on[one.node][uid]
        self._taken[one.node].subtract(self._took.pop(uid))
        self.unknown.discard(uid)
        self._count(one, -1)
        for kind in repelling_kinds(one.pod):
            del self.repelling[kind].owners[uid]
            if not self.repelling[kind].owners:
                del self.repelling[kind]

    def _count(self, one: Placed, number: int) -> None:
        for tally in self._tallies.values():
            tally.add(one, number)
        for claim in claims(one.pod):
            self.users[namespace(one.pod), claim] += number

    def repels(self, uid: str, kind: str) -> bool:
        """Whether a pod has that term."""
        return kind in self.repelling and uid in self.repelling[kind].owners

    def on(self, node: str) -> list[Placed]:
        """Pods on a node."""
        return list(self._on[node].values())

    def taken(self, node: str) -> Counter[str]:
        """What they take together."""
        return self._taken[node]

    def tally(self, kind: Hashable, counts: Callable[[Placed], bool]) -> Tally:
        """How many pods of a kind there are where.

        :param kind: all that `counts` goes by
        """
        if kind not in self._tallies:
            made = self._tallies[kind] = Tally(counts)
            for one in self._placed.values():
                made.add(one, 1)
        return self._tallies[kind]
