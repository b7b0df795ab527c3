"""One workload on a stack, from its first op to the check of what is left."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from podyard.bench import end_state, history, machine
from podyard.bench.checking import holding
from podyard.bench.scheduler_perf import gates, result, stacks
from podyard.bench.scheduler_perf.config import Case, Churn, Step, Workload
from podyard.bench.scheduler_perf.documents import Files
from podyard.bench.scheduler_perf.executing import Executor, Measured, Tell
from podyard.bench.scheduler_perf.following import Follower
from podyard.bench.scheduler_perf.measuring import Meters
from podyard.bench.scheduler_perf.result import Result, Setting, Streams
from podyard.bench.scheduler_perf.stacks import Options, There
from podyard.bench.scheduler_perf.through_api import ThroughApi
from podyard.bus import Bus, connect
from podyard.cli.errors import InputError
from podyard.plugins.defaults import default_profile
from podyard.runtime import clock
from podyard.shell.snapshot import snapshot

OWN_PROFILES: Final = "(not looked at: the workload has a scheduler configuration of its own)"
UNKNOWN_PROFILES: Final = "(not looked at: a stack that runs may have a scheduler configuration of its own)"
NOT_WANTED: Final = "(not looked at)"
SHOWN: Final = 3


class Run:
    """One workload.

    :param directory: where the files are that it names
    :param running: the stack; None: one is started for it
    """

    def __init__(
        self,
        directory: Path,
        case: Case,
        workload: Workload,
        steps: Sequence[Step],
        options: Options,
        tell: Tell,
        *,
        running: There | None = None,
    ) -> None:
        self._directory = directory
        self._case = case
        self._workload = workload
        self._steps = steps
        self._options = options
        self._tell = tell
        self._lab = running
        self._load_before = os.getloadavg()[0]
        self._at = clock.now()

    async def measured(self) -> list[Result]:
        """Each part that it measures.

        :raises CliError: it does not come to an end, or is refused
        """
        if self._lab is not None and self._case.scheduler_config_path:
            raise InputError(f"{self._case.name} has a scheduler configuration of its own: a stack is started for it")
        if self._lab is not None:
            return await self._there(self._lab)
        path = self._case.scheduler_config_path
        async with stacks.started(self._options, str(self._directory / path) if path else "") as there:
            return await self._there(there)

    async def _there(self, there: There) -> list[Result]:
        async with connect(there.bus) as bus:
            return await self._on(bus, there)

    async def _on(self, bus: Bus, there: There) -> list[Result]:
        if there.name == stacks.RUNNING:
            await _refuse_others(bus)
        follower = Follower(bus)
        measured = Meters(bus, there)
        executor = Executor(
            bus,
            self._case,
            Files(self._directory),
            follower,
            measured,
            equal_churn=self._options.equal_churn,
            pace=self._options.pace,
            api=ThroughApi(bus) if there.by_api else None,
            tell=self._tell,
        )
        found: list[Measured] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower.run)
            found += await executor.run(self._steps)
            tasks.cancel_scope.cancel()
        checked = await self._checked(bus, there)
        streams = await self._streams(bus)
        setting = self._setting(checked, streams, there)
        return [result.of(one, setting) for one in found]

    async def _checked(self, bus: Bus, there: There) -> str:
        """What is wrong with what is left.

        A pod that would fit and waits is no fault while a scheduler may still be at it, as it is where churn
        has just ended; a node that holds too much is one at any time.
        """
        if not self._options.check:
            return NOT_WANTED
        if self._case.scheduler_config_path:
            return OWN_PROFILES
        if there.name == stacks.RUNNING:
            return UNKNOWN_PROFILES
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

    async def _streams(self, bus: Bus) -> Streams | None:
        """What the checker says of what was stored."""
        if not self._options.check:
            return None
        self._tell(len(self._steps), len(self._steps), "judging every binding")
        return result.streams(await holding.check(bus))

    def _setting(self, checked: str, streams: Streams | None, there: There) -> Setting:
        return Setting(
            case=f"{self._case.name}/{self._workload.name}",
            stack=there.name,
            services=there.instances,
            synchronous=self._options.synchronous,
            tracing=None if there.name == stacks.RUNNING else self._options.tracing,
            churns=self._changes,
            equal_churn=self._options.equal_churn,
            pace=self._options.pace,
            gates_without_effect=tuple(gates.of_no_effect(self._case.feature_gates, self._workload.feature_gates)),
            checked=checked,
            streams=streams,
            load_before=self._load_before,
            at=self._at,
            machine=machine.this_machine(),
            commit=history.commit(),
        )


async def _refuse_others(bus: Bus) -> None:
    """
    :raises InputError: there are nodes or pods already, which would be measured too
    """
    view = await snapshot(bus)
    if view.nodes or view.pods:
        raise InputError(
            f"the stack that runs has {len(view.nodes)} nodes and {len(view.pods)} pods already",
            "start one that has none: podyard up --name bench",
        )
