"""One run in which nodes are lost, cut off, and live again: real agents and workloads beside queue, scheduler
and binder. Agents whose choices of nodes overlap, and one that stands by for another, are among them.

Virtual minutes rather than seconds: a node is lost after 50 s of silence.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from podyard.node_agent.settings import NodeAgentSettings
from podyard.node_agent.term import Term as AgentTerm
from podyard.proto import codec, headers, streams, subjects
from podyard.proto.facts import NodeStatusFact
from podyard.workloads.term import Term as WorkloadsTerm
from tests.memory_nats import MemoryServer
from tests.memory_nats.stream import Stored, Stream
from tests.simulation.node_rules import TOLERATED_S, NodeChecker, Playing, node_of
from tests.simulation.process import Process
from tests.simulation.simulation import LOOK_EVERY_S, Plan, Simulation, Verdict
from tests.support import objects, stored
from tests.support.read import read

NODES = 12
ZONES = 3
SETS = {f"web{number}": 4 for number in range(5)}
"""ReplicaSets, and how many pods they want."""
SERVICES = (
    ("queue", "queue-a"),
    ("binder", "binder-a"),
    ("scheduler", "scheduler-a"),
    ("workloads", "workloads-a"),
    ("workloads", "workloads-b"),
)
CHOICES: dict[str, tuple[str, ...]] = {
    **{f"agent-{number}": (f"n{number}", f"n{number + 6}") for number in range(6)},
    "agent-0b": ("n0", "n6"),
    "agent-spare": ("n0", "n1", "n2"),
}
"""Nodes of the agents: of one of two zones at the most, of those that are cut off together all."""
FAULTS = 14
SHARES = (12, 4, 1, 1)
"""How often a fault is of one agent, of all in a zone, of those who judge, of everybody."""
FIRST_S, LAST_S = 60.0, 300.0
LASTS_S = (3.0, 12.0, 40.0, 60.0, 75.0, 90.0, 120.0)
QUIET_FROM_S = LAST_S + max(LASTS_S) + 5.0
END_S = QUIET_FROM_S + 240.0
Document = dict[str, Any]


class NodePlan(Plan, frozen=True, kw_only=True):
    """What a run is made of."""

    faults: int = FAULTS
    quiet_from_s: float = QUIET_FROM_S

    def run(self, sabotage: Callable[[Simulation], None] | None = None) -> Verdict:
        """Play it."""
        return NodeLifeSimulation(self, sabotage).run()


class People:
    """They make nodes and ReplicaSets, and nothing else."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self.accepted: set[str] = set()
        """Uids of pods that people made."""

    def begin(self) -> None:
        for number in range(NODES):
            labels = {objects.ZONE: f"z{number % ZONES}"}
            node = objects.node(f"n{number}", uid=f"node-{number}", cpu="8", memory="16Gi", pods="20", labels=labels)
            self._put(subjects.NODES, node)
        for name, replicas in SETS.items():
            self._put("replicasets", _replica_set(name, replicas))

    def stored(self, message: Stored, document: Document | None, placement: object) -> None:
        """They do not care."""

    def _put(self, resource: str, document: Document) -> None:
        message = stored.version(resource, document, who="people")
        self._server.write(message.subject, message.payload, {})


class NodeLifeSimulation(Simulation):
    """Made once a process."""

    def __init__(self, plan: NodePlan, sabotage: Callable[[Simulation], None] | None = None) -> None:
        self.nodes = [f"n{number}" for number in range(NODES)]
        self.judge = NodeChecker({name: f"z{number % ZONES}" for number, name in enumerate(self.nodes)})
        self._terms: dict[str, AgentTerm] = {}
        """What agents do, by instance; of one that was killed, what it did."""
        self._hears_since: dict[str, float] = {}
        self._watch_terms()
        super().__init__(plan, sabotage)
        self.agents = [process for process in self.processes if process.service == "node_agent"]
        self._chance = Random(f"nodes {plan.seed}")
        self._listen_to_beats()

    def _make_world(self) -> People:
        return People(self.server)

    def _make_processes(self) -> list[Process]:
        agents = [
            self.process("node_agent", instance, NodeAgentSettings(nodes=nodes)) for instance, nodes in CHOICES.items()
        ]
        return [*(self.process(*place) for place in SERVICES), *agents]

    # ---- what is watched

    def _watch_terms(self) -> None:
        play, lead = AgentTerm.run, WorkloadsTerm.run

        async def plays(term: AgentTerm) -> None:
            instance = term._service.instance
            self._terms[instance] = term
            try:
                await play(term)
            finally:
                if self._terms.get(instance) is term:
                    del self._terms[instance]

        async def leads(term: WorkloadsTerm) -> None:
            self.judge.term_began(self.clock.elapsed)
            await lead(term)

        AgentTerm.run, WorkloadsTerm.run = plays, leads  # type: ignore[method-assign]

    def _listen_to_beats(self) -> None:
        publish = self.server.publish

        def listening(subject: str, payload: bytes, reply: str = "", head: bytes = b"") -> None:
            if subject.startswith("heartbeat."):
                self.judge.beat(node_of(subject), self.clock.elapsed)
            publish(subject, payload, reply, head)

        self.server.publish = listening  # type: ignore[method-assign]

    def _stored(self, stream: Stream, stored: list[Stored]) -> None:
        super()._stored(stream, stored)
        if stream.name != streams.CLUSTER.name:
            return
        for message in stored:
            found = read(message)
            if found.placement is not None:
                self.judge.placed[found.placement.uid] = found.placement
            self._note(message, found.document)
        self._tell_violations()

    def _note(self, message: Stored, document: Document | None) -> None:
        gone = headers.DELETED.encode() in (message.head or b"")
        area, kind, *_ = message.subject.split(".")
        if area != "cluster":
            return
        now = self.clock.elapsed
        if kind == subjects.PODS:
            self.judge.pod(document, node_of(message.subject), now)
        elif kind == "nodelife":
            self.judge.life(node_of(message.subject), b"" if gone else message.payload, now)
        elif kind == "nodestatus" and not gone:
            self.judge.status(node_of(message.subject), codec.decode(NodeStatusFact, message.payload).session)

    def _tell_violations(self) -> None:
        found, self.judge.violations = self.judge.violations, []
        for text in found:
            self.wrong(text)

    def _look(self) -> None:
        self.judge.look(self._playing(), self.clock.elapsed)
        self._tell_violations()

    def _playing(self) -> list[Playing]:
        found: list[Playing] = []
        for process in self.agents:
            if not process.hears:
                self._hears_since.pop(process.instance, None)
                continue
            since = self._hears_since.setdefault(process.instance, self.clock.elapsed)
            term = self._terms.get(process.instance)
            nodes: tuple[str, ...] = ()
            pods: list[tuple[str, str]] = []
            if term is not None and process.plays(term._service.session):
                core = term._core
                nodes = tuple(name for name in CHOICES[process.instance] if name in core.nodes)
                pods = [(pod.uid, node) for node in nodes for pod in core.pods.on(node) if pod.active]
            found.append(Playing(process.instance, since, nodes, tuple(pods)))
        return found

    # ---- what fails

    def _plan_faults(self) -> None:
        for _ in range(self.plan.faults):
            at_s, lasts_s = self._chance.uniform(FIRST_S, LAST_S), self._chance.choice(LASTS_S)
            kind = self._chance.choice((self._kill, self._pause, self._partition, self._cut))
            (whom,) = self._chance.choices((self._one, self._zone, self._leaders, self._everybody), SHARES)
            some = whom()
            self.clock.later(at_s, lambda k=kind, s=some, d=lasts_s: self._inject(k, s, d))

    def _one(self) -> list[Process]:
        return [self._chance.choice(self.agents)]

    def _zone(self) -> list[Process]:
        number = self._chance.randrange(ZONES)
        return [one for one in self.agents if one.instance in (f"agent-{number}", f"agent-{number + 3}", "agent-0b")]

    def _leaders(self) -> list[Process]:
        return [one for one in self.processes if one.service == "workloads"]

    def _everybody(self) -> list[Process]:
        return self.processes

    def _inject(self, kind: Callable[[Process, float], None], some: list[Process], lasts_s: float) -> None:
        names = "everybody" if some is self.processes else ", ".join(one.instance for one in some)
        self.faults.count += 1
        self.tell(f"FAULT {kind.__name__.strip('_')} of {names} for {lasts_s:g} s")
        for process in some:
            kind(process, lasts_s)

    def _kill(self, process: Process, lasts_s: float) -> None:
        process.kill()
        self.clock.later(lasts_s, lambda: None if process.alive else process.start())

    def _pause(self, process: Process, lasts_s: float) -> None:
        loop = process.loop
        if loop is None or loop.dead or loop.paused:
            return
        loop.pause()
        self.clock.later(lasts_s, lambda: loop.dead or loop.resume())

    def _partition(self, process: Process, lasts_s: float) -> None:
        process.network.up_held = process.network.down_held = True
        if process.service == "workloads":
            self.judge.parted(self.clock.elapsed, self.clock.elapsed + lasts_s)

        def heal() -> None:
            process.network.up_held = process.network.down_held = False
            if process.way is not None:
                process.way.release()

        self.clock.later(lasts_s, heal)

    def _cut(self, process: Process, lasts_s: float) -> None:
        process.cut()
        self.clock.later(lasts_s, process.restore)

    # ---- the run

    def run(self) -> Verdict:
        """From the first node to a settled cluster, or to the first second with a violation."""
        for process in self.processes:
            process.start()
        self.clock.later(1.0, self.world.begin)
        self._plan_faults()
        self._until(self.plan.quiet_from_s, lambda: False)
        if not self.checker.violations:
            self._until(END_S, lambda: not self._lacking())
            for text in self._lacking():
                self.wrong(text)
        return self._verdict()

    def _until(self, end_s: float, enough: Callable[[], bool]) -> None:
        while self.clock.elapsed < end_s and not self.checker.violations:
            self.clock.run(self.clock.elapsed + 1.0)
            self._look()
            if self.clock.elapsed % LOOK_EVERY_S == 0 and enough():
                return

    def _lacking(self) -> list[str]:
        return self.judge.unsettled(self._playing(), self.nodes, SETS)

    def _verdict(self) -> Verdict:
        made = super()._verdict()
        judge = self.judge
        told = {"nodes lost": judge.losses, "pods evicted": judge.evictions, "nodes taken": judge.takings}
        made.counts.update(told)
        return made


def _replica_set(name: str, replicas: int) -> Document:
    labels = {"app": name}
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": int(TOLERATED_S)}
        for key in ("not-ready", "unreachable")
    ]  # fmt: skip
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}
    spec = {
        "terminationGracePeriodSeconds": 1,
        "tolerations": tolerations,
        "schedulerName": "default-scheduler",
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": f"set-{name}", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
