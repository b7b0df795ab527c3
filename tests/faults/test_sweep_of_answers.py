"""One bad answer stays one bad answer: whatever an extender says of a pod, whatever a plugin does in a hook,
services live, other pods are bound meanwhile, and the pod that met it can be deleted.

`make test` does one of many harms, `make test-faults` all. A failure names the harms of its round.
"""

import itertools
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import msgspec
import pytest

from podyard.bus import BusSettings, connect
from podyard.cli import objects_client
from podyard.cli.lab.lab import Lab
from podyard.cli.security import directory
from podyard.descheduler import making as descheduler
from podyard.descheduler.service import SERVICE as DESCHEDULER
from podyard.descheduler.settings import DeschedulerSettings
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.queue.core.waking import NAMED_SKIPS
from tests.e2e.labs import ROOT
from tests.e2e.stage import WITHIN_S, node
from tests.faults import hostile_extender, hostile_plugin
from tests.faults.hostile_descheduling import OWNED, Descheduling
from tests.faults.hostile_plugin import AMISS, AT_INDEX, NOWHERE, OF_INDEXES, PREEMPTS
from tests.faults.sweep import GONE_S, STARTED_S, TIMES, Sweep, sweeping
from tests.support.extender_server import extender_server
from tests.support.holding import held
from tests.support.services import make_service
from tests.support.waiting import eventually

SERVICES: Final = "api,queue,scheduler,binder,node_agent,workloads"
ROUND: Final = 40
"""Harms between two looks at whether work goes on."""
LOWEST: Final = 30
"""Pods of low priority that a round may preempt."""
TURN_S: Final = 0.1
"""Between two changes of a node."""
HIGH: Final = "high"
LOW: Final = "low"
CROWDED: Final = "crowded"
HOSTILE: Final = "hostile"

extents = pytest.mark.parametrize(
    ("every", "secure"),
    [
        pytest.param(83, False, id="a few", marks=pytest.mark.timeout(120)),
        pytest.param(1, False, id="all", marks=[pytest.mark.whole_faults, pytest.mark.timeout(1_800)]),
        pytest.param(11, True, id="keys", marks=[pytest.mark.whole_faults, pytest.mark.timeout(1_800)]),
    ],
)
"""One of so many harms is done; whether everybody needs a key."""


def configuration(url: str) -> bytes:
    """The scheduler's, with the plugin and both extenders.

    :param url: of the server that answers for the extenders
    """
    first, second = (
        {
            "urlPrefix": url,
            "weight": 2,
            "httpTimeout": "5s",
            "managedResources": [{"name": name, "ignoredByScheduler": True}],
        }
        for name in hostile_extender.RESOURCES
    )
    first |= {f"{verb}Verb": verb for verb in hostile_extender.GOOD}
    second |= {f"{verb}Verb": f"{hostile_extender.SECOND}{verb}" for verb in ("filter", "prioritize")}
    plugin = [{"name": "tests.faults.hostile_plugin:Hostile"}]
    points = {
        "queueSort": {"disabled": [{"name": "PrioritySort"}], "enabled": plugin},
        "bind": {"enabled": plugin},
        "postFilter": {"enabled": [{"name": "tests.faults.hostile_plugin:Stepless"}]},
        "multiPoint": {"enabled": plugin},
    }
    return msgspec.json.encode(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "profiles": [{"schedulerName": "default-scheduler", "plugins": points}],
            "extenders": [first, {**second, "urlPrefix": f"{url}/second", "ignorable": True}],
        }
    )


class Bad(NamedTuple):
    """A pod that will meet a harm, and which."""

    pod: str
    what: str
    asks_extenders: bool


class Hostility:
    """A lab whose every pod meets the plugin; and what it did amiss."""

    def __init__(self, sweep: Sweep, met_by_plugin: Path, met_by_extenders: set[str], at_index: Path) -> None:
        self.sweep = sweep
        self.here = sweep.here
        self._by_plugin = met_by_plugin
        self._by_extenders = met_by_extenders
        self._at_index = at_index
        self._turns = itertools.count(1)

    @property
    def met(self) -> set[str]:
        """Bad pods to which their harm was done, and `hook:what` of indexes."""
        return {*self._by_plugin.read_text(encoding="utf-8").split(), *self._by_extenders}

    async def furnish(self, parked: int) -> None:
        """Nodes for bad pods, one of them full of pods of low priority.

        :param parked: so many pods wait for ever: with more than a number, indexes of hints are asked
        """
        await self.here.do.apply([_priority()], "for those that preempt")
        await self.here.join(
            node("hostile-1", cpu="1000", pods="2000", labels={HOSTILE: "yes"}),
            node("hostile-2", cpu="1000", pods="2000", labels={HOSTILE: "yes"}),
            node("hostile-3-refused", cpu="1000", pods="2000", labels={HOSTILE: "yes"}),
            node(CROWDED, cpu=str(LOWEST), pods="2000", labels={CROWDED: "yes"}),
        )
        waiting = [self.here.pod(f"parked-{number}-{NOWHERE}") for number in range(parked)]
        for batch in _batched(waiting, 100):
            await self.here.do.apply(batch, "pods that fit nowhere")
        low = _replicas(self.here.namespace, LOW, LOWEST, {"cpu": "1"}, nodeSelector={CROWDED: "yes"})
        await self.here.do.apply([low], "pods to be preempted")
        await self.full()

    async def full(self) -> None:
        """Wait until the pods of low priority take all of their node."""

        def all_bound() -> bool:
            pods = self.here.seen.view.pods.values()
            return (
                sum(pod.labels.get("app") == LOW and pod.bound is not None and not pod.gone for pod in pods) == LOWEST
            )

        await self.here.seen.until("a node full of pods of low priority", all_bound, WITHIN_S)

    async def amiss(self, batch: Sequence[Bad]) -> None:
        """Each pod meets its harm, work goes on meanwhile, and they go when they are deleted."""
        names = {one.pod for one in batch}
        await self.here.do.apply([self._pod(one) for one in batch], "pods that meet harm")
        harm_of = {one.pod: one.what for one in batch}
        try:
            await eventually("each harm done", lambda: self._all_met(names), WITHIN_S)
        except AssertionError:
            left = [harm_of[name] for name in sorted(names - self.met)]
            raise AssertionError(f"the sweep does not reach {left}; logs: {self.here.lab.directory}/logs") from None
        await self.sweep.goes_on(harm_of.values())
        await self._gone(names)
        await self.full()

    async def index_amiss(self, hook: str, what: str) -> None:
        """A new queue, whose index of hints fails at once; pods that fit nowhere come and go."""
        self._at_index.write_text(f"{hook}: {what}", encoding="utf-8")
        self.sweep.kill("queue")
        met, turn = {f"{hook}:{what.replace(' ', '-')}"}, f"turn-{NOWHERE}"

        async def met_it() -> bool:
            await self.here.do.apply([self.here.pod(turn)], "it fits nowhere")
            await self._gone([turn])
            return await self._all_met(met)

        await eventually(f"{hook} that does amiss ({what})", met_it, STARTED_S)
        self._at_index.write_text("", encoding="utf-8")
        await self.sweep.goes_on([f"plugin's {hook}: {what}"])

    async def _all_met(self, names: set[str]) -> bool:
        """Whether they are; if not, a node changes, for the hints."""
        if names <= self.met:
            return True
        labels = {HOSTILE: "yes", "turn": str(next(self._turns))}
        await self.here.do.apply([node("hostile-1", cpu="1000", pods="2000", labels=labels)], "the next turn")
        await anyio.sleep(TURN_S)
        return False

    def _pod(self, bad: Bad) -> Any:
        where = CROWDED if PREEMPTS in bad.pod else HOSTILE
        asked = dict.fromkeys(hostile_extender.RESOURCES, "1") if bad.asks_extenders else {}
        cpu = "1" if PREEMPTS in bad.pod else "100m"
        container = {"resources": {"requests": {"cpu": cpu, **asked}, "limits": asked}}
        high = {"priorityClassName": HIGH} if PREEMPTS in bad.pod else {}
        place = {"nodeSelector": {where: "yes"}, "terminationGracePeriodSeconds": 0}
        return self.here.pod(bad.pod, cpu="", container=container, **place, **high)

    async def _gone(self, names: Iterable[str]) -> None:
        left = {subjects.object_("pods", self.here.namespace, name) for name in names}
        ends = [ObjectRef(resource="pods", namespace=self.here.namespace, name=name) for name in sorted(names)]
        await objects_client.delete(self.here.bus, ends, grace_period_s=0, timeout_s=GONE_S)
        await eventually("bad pods gone", lambda: not left & self.sweep.stored.objects, GONE_S)


def _priority() -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": HIGH},
        "value": 1000,
    }


def _replicas(namespace: str, name: str, number: int, requests: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A ReplicaSet whose pods have its name as the label `app`."""
    container = {"name": "main", "image": "test", "resources": {"requests": requests}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": number,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
            },
        },
    }


@asynccontextmanager
async def hostile_lab(folder: Path, secure: bool) -> AsyncGenerator[Hostility]:
    """A lab of its own, furnished by its user."""
    met_by_plugin, met_by_extenders = folder / "met", set[str]()
    at_index = folder / "index"
    for file in (met_by_plugin, at_index):
        file.touch()
    environment = {**TIMES, "PYTHONPATH": str(ROOT), hostile_plugin.MET: str(met_by_plugin), AT_INDEX: str(at_index)}
    with extender_server() as server:
        server.answers |= hostile_extender.answers(met_by_extenders)
        file = folder / "scheduler.json"
        file.write_bytes(configuration(server.url))
        lab = sweeping(folder / "lab", SERVICES, environment, scheduler_config=str(file), secure=secure)
        async with lab as sweep:
            yield Hostility(sweep, met_by_plugin, met_by_extenders, at_index)


def some(every: int) -> list[Bad]:
    """One of so many harms, of the plugin's hooks and of the extenders' verbs."""
    return [
        *(Bad(one.pod, f"plugin's {one.hook}: {one.what}", False) for one in hostile_plugin.HARMS),
        *(Bad(one.pod, f"extender's {one.verb}: {one.what}", True) for one in hostile_extender.HARMS),
    ][::every]


def _batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(items)
    while batch := list(itertools.islice(left, size)):
        yield batch


@extents
async def test_what_plugins_and_extenders_do_amiss(tmp_path: Path, every: int, secure: bool) -> None:
    async with held(hostile_lab(tmp_path, secure)) as hostility:
        whole = every == 1
        await hostility.furnish(parked=NAMED_SKIPS + 10 if whole else 0)
        for batch in _batched(some(every), ROUND):
            await hostility.amiss(batch)
        if whole:
            for hook, what in itertools.product(OF_INDEXES, list(AMISS)[::9]):
                await hostility.index_amiss(hook, what)
        with pytest.MonkeyPatch.context() as patch:
            await _descheduled(hostility, Descheduling.of(list(AMISS)[:: 1 if whole else 6], tmp_path), patch)


async def _descheduled(hostility: Hostility, amiss: Descheduling, patch: pytest.MonkeyPatch) -> None:
    """One cycle of a descheduler of our own; the pod that has to go goes, and each of its plugins is told
    of."""
    patch.setattr(descheduler, "PLUGINS", {**descheduler.PLUGINS, **amiss.plugins})
    here = hostility.here
    made = _replicas(here.namespace, OWNED, 1, {})
    await here.do.apply([here.pod("bad"), here.pod("leaving"), made], "for the descheduler")
    await here.running("bad", "leaving")
    await here.seen.until("an owned pod that runs", lambda: here.seen.running(OWNED), WITHIN_S)
    async with connect(_descheduler_settings(here.lab)) as bus:
        service = make_service(DESCHEDULER, bus, DeschedulerSettings(policy=amiss.policy, once=True))
        await DESCHEDULER.main(service)
    samples = [one for metric in service.metrics.collect() for one in metric.samples]
    told = {one.labels["plugin"] for one in samples if one.name == "podyard_descheduler_plugin_faults_total"}
    assert told == amiss.hostile
    await eventually("the pod gone that has to go", lambda: here.known("leaving") is None, GONE_S)
    await hostility.sweep.goes_on(["a cycle of the descheduler"])


def _descheduler_settings(lab: Lab) -> BusSettings:
    if not lab.options.security:
        return BusSettings(servers=(lab.url,), name="descheduler", service="descheduler")
    return directory.bus_settings(Path(lab.options.security), directory.named("descheduler"), (lab.url,))
