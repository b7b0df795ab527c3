"""One workload on a lab of its own: the services and a NATS server, from their start to the check of what is
left."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import anyio
import msgspec

from podyard.bench import end_state, history, machine, meters
from podyard.bench.scheduler_perf import gates, result
from podyard.bench.scheduler_perf.config import Case, Churn, Step, Workload
from podyard.bench.scheduler_perf.documents import Files
from podyard.bench.scheduler_perf.executing import Executor, Measured, Tell
from podyard.bench.scheduler_perf.following import Follower
from podyard.bench.scheduler_perf.measuring import Meters
from podyard.bench.scheduler_perf.result import Result, Setting
from podyard.bus import Bus, BusSettings, connect
from podyard.cli.lab import plan
from podyard.cli.lab.lab import Lab, LabOptions, running_lab
from podyard.plugins.defaults import default_profile
from podyard.runtime import clock, ports
from podyard.shell.snapshot import snapshot

READY_WITHIN_S: Final = 30.0
Stack: TypeAlias = Literal["headline", "all"]
STACKS: Final[dict[Stack, str]] = {"headline": "queue,scheduler,binder", "all": ""}
"""Services by stack, as `plan.parse` has them."""
OWN_PROFILES: Final = "(not looked at: the workload has a scheduler configuration of its own)"
NOT_WANTED: Final = "(not looked at)"
SHOWN: Final = 3


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How workloads are run."""

    stack: Stack = "headline"
    synchronous: bool = False
    """The NATS server calls fsync before it acknowledges."""
    equal_churn: float = 0.0
    """Pods a second of the run whose churn for each pod is to be equalled; 0: churn goes by the clock."""
    check: bool = True
    data: str = ""


class Run:
    """One workload.

    :param directory: where the files are that it names
    """

    def __init__(
        self, directory: Path, case: Case, workload: Workload, steps: Sequence[Step], options: Options, tell: Tell
    ) -> None:
        self._directory = directory
        self._case = case
        self._workload = workload
        self._steps = steps
        self._options = options
        self._tell = tell
        self._load_before = os.getloadavg()[0]
        self._at = clock.now()

    async def measured(self) -> list[Result]:
        """Each part that it measures.

        :raises CliError: it does not come to an end, or is refused
        """
        monitor = ports.free_port()
        path = self._case.scheduler_config_path
        options = LabOptions(
            services=plan.parse(STACKS[self._options.stack]),
            data_dir=self._options.data,
            scheduler_config=str(self._directory / path) if path else "",
            server_settings={"http": f"127.0.0.1:{monitor}", **self._synchronous()},
            environment={"PODYARD_CORE_DUMPS": "true"},  # memory is measured, which a process must allow
        )
        async with running_lab(options) as lab:
            await lab.until_ready(READY_WITHIN_S)
            settings = BusSettings(servers=(lab.url,), name="podyard-bench", service="cli")
            async with connect(settings) as bus:
                return await self._on(bus, lab, monitor)

    async def _on(self, bus: Bus, lab: Lab, monitor: int) -> list[Result]:
        follower = Follower(bus)
        places = [child.http for child in lab.children]
        measured = Meters(bus, meters.processes(lab), monitor, places)
        executor = Executor(
            bus,
            self._case,
            Files(self._directory),
            follower,
            measured,
            equal_churn=self._options.equal_churn,
            tell=self._tell,
        )
        found: list[Measured] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower.run)
            found += await executor.run(self._steps)
            tasks.cancel_scope.cancel()
        checked = await self._checked(bus)
        setting = self._setting(checked, tuple(child.instance for child in lab.children))
        return [result.of(one, setting) for one in found]

    async def _checked(self, bus: Bus) -> str:
        """What is wrong with what is left.

        A pod that would fit and waits is no fault while a scheduler may still be at it, as it is where churn
        has just ended; a node that holds too much is one at any time.
        """
        if not self._options.check:
            return NOT_WANTED
        if self._case.scheduler_config_path:
            return OWN_PROFILES
        self._tell(len(self._steps), len(self._steps), "judging what is left")
        view = await snapshot(bus)
        left = end_state.judge(view, default_profile())
        if left.overloaded:
            return f"nodes hold more than they have: {', '.join(left.overloaded[:SHOWN])}"
        gated = {pod.name for pod in view.pods.values() if pod.stored.spec.scheduling_gates}
        fitting = {name: node for name, node in left.fitting.items() if name not in gated}
        if fitting and not self._changes:
            name, node = next(iter(fitting.items()))
            return f"{len(fitting)} pods wait though a node would take them: {name} on {node}"
        return ""

    @property
    def _changes(self) -> bool:
        return any(isinstance(step, Churn) for step in self._steps)

    def _setting(self, checked: str, services: tuple[str, ...]) -> Setting:
        return Setting(
            case=f"{self._case.name}/{self._workload.name}",
            stack=self._options.stack,
            services=services,
            synchronous=self._options.synchronous,
            churns=self._changes,
            equal_churn=self._options.equal_churn,
            gates_without_effect=tuple(gates.of_no_effect(self._case.feature_gates, self._workload.feature_gates)),
            checked=checked,
            load_before=self._load_before,
            at=self._at,
            machine=machine.this_machine(),
            commit=history.commit(),
        )

    def _synchronous(self) -> dict[str, Any]:
        return {"jetstream": {"sync_interval": "always"}} if self._options.synchronous else {}
