"""A node as the scripts of suite `synchronize` drive it: a clock, what is measured, what can be collected,
and what fails. It answers the rounds of the agent's eviction manager."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Ask, Failed, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.manager import EvictionManager
from podyard.objects import decoding, times
from podyard.objects.pod import Pod
from tests.conformance import kubelet

NAMES = {Collector.CONTAINERS: "containerGC", Collector.IMAGES: "imageGC"}
"""What the scripts call the collectors."""

PLACES = {
    "memory": ("memory",),
    "nodefs": ("fs",),
    "imagefs": ("runtime", "imageFs"),
    "containerfs": ("runtime", "containerFs"),
}
"""Where in a summary a signal's values are."""


class EvictionHost:
    """State of the node. What a round asked of it is kept until the next."""

    def __init__(self, start: str, layout: Layout, pods: list[dict[str, Any]]) -> None:
        self.start = times.seconds_of(start)
        self.past_ms = 0
        self.layout = layout
        self.pods: dict[str, Pod] = {}
        self.add(pods)
        self.node: dict[str, Any] = {}
        self.stats: list[dict[str, Any]] = []
        self.collectors: dict[str, dict[str, Any]] = {}
        self.errors: dict[str, str] = {}
        """What fails, by the step that said so."""
        self.collected: list[str] = []
        self._ended: list[str] = []

    @property
    def now(self) -> float:
        return self.start + self.past_ms / 1000

    def after(self, at: float) -> float:
        """Seconds since the start."""
        return round(at - self.start, 3)

    def add(self, pods: list[dict[str, Any]]) -> None:
        """Pods that are active from now on."""
        for one in pods:
            pod = decoding.convert(Pod, deepcopy(one))
            self.pods["/".join(pod.key)] = pod

    def step(self, step: Mapping[str, Any]) -> None:
        """All steps but the manager's own."""
        match step["op"]:
            case "advance":
                self.past_ms += round(step["seconds"] * 1000)
            case "stats":
                self.node = deepcopy(step.get("node", self.node))
                self.stats = step.get("pods", self.stats)
            case "gc":
                self.collectors = deepcopy({name: step[name] for name in NAMES.values() if name in step})
            case "pods":
                for name in step.get("removePods", ()):
                    self.pods.pop(name, None)
                self.add(step.get("addPods", []))
            case what:
                self.errors[what] = step.get("error", "")

    def synchronize(self, manager: EvictionManager) -> Round:
        """Play one round; pods that were killed are gone when it is over."""
        self.collected, self._ended = [], []
        dialogue = manager.round()
        try:
            ask = next(dialogue)
            while True:
                ask = dialogue.send(self._answer(ask))
        except StopIteration as done:
            return cast("Round", done.value)
        finally:
            for name in self._ended:
                del self.pods[name]

    def _answer(self, ask: Ask) -> Answer:
        match ask:
            case Question.LAYOUT:
                return self._unless("diskInfoError", self.layout)
            case Question.READING:
                summary = kubelet.summary(self.node, self.stats)
                return self._unless("statsError", Reading(summary, tuple(self.pods.values()), self.now))
            case Kill():
                answer = self._unless("killError", DONE)
                self._ended += ["/".join(ask.pod.key)] if answer is DONE else []
                return answer
            case Collector():
                return self._collect(NAMES[ask])

    def _unless(self, error: str, answer: Answer) -> Answer:
        why = self.errors.get(error)
        return Failed(why) if why else answer

    def _collect(self, name: str) -> Answer:
        """What is freed is added once, also by a collector that fails."""
        self.collected.append(name)
        behaviour = self.collectors.get(name, {})
        for signal, amount in behaviour.pop("frees", {}).items():
            system, _, what = signal.partition(".")
            values = self.node
            for key in PLACES[system]:
                values = values.get(key, {})
            if what == "available":
                what = "availableBytes"
            if what in values:
                values[what] += amount
        error = behaviour.get("error")
        return Failed(error) if error else DONE
