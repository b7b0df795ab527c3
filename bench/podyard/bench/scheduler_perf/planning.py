"""The ops of one workload: its parameters are filled in, sets of pods are unrolled.

Source: kubernetes v1.36.2, test/integration/scheduler_perf/scheduler_perf.go, unrollWorkloadTemplate;
patchParams and isValid of each op.
"""

import re
from typing import Final, TypeVar

import msgspec

from podyard.bench.scheduler_perf import gates
from podyard.bench.scheduler_perf.config import (
    DEVICES,
    Case,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreatePodSets,
    DeletePods,
    Parameter,
    Sleep,
    StartCollectingMetrics,
    Step,
    StopCollectingMetrics,
    UpdateAny,
    Workload,
)
from podyard.cli.errors import InputError

MOST: Final = 1_000_000
"""Objects of one op: ten times the reference's largest."""
UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION: Final = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")

T = TypeVar("T", CreateAny, CreateNodes, CreateNamespaces, CreatePods, CreatePodSets, UpdateAny)


def plan(case: Case, workload: Workload) -> list[Step]:
    """What is to be done, in its order.

    :raises InputError: it cannot be run; says why
    """
    name = f"{case.name}/{workload.name}"
    refused = gates.refusal(case.feature_gates, workload.feature_gates)
    if refused:
        raise InputError(f"{name}: {refused}", "choose a workload without it: --list shows them")
    planner = _Planner(workload)
    steps: list[Step] = []
    for number, op in enumerate(case.workload_template):
        try:
            steps += planner.filled(op)
        except ValueError as error:
            opcode = type(op).__struct_config__.tag
            raise InputError(f"{name}: op {number} ({opcode}): {error}") from error
    unused = sorted(set(workload.params) - planner.used)
    if unused:
        raise InputError(f"{name}: parameters that no op uses: {', '.join(unused)}")
    if not any(_collects(op) for op in steps):
        raise InputError(f"{name}: no op measures anything")
    return steps


def seconds(text: str) -> float:
    """A duration as Go writes it.

    :raises ValueError: it is none
    """
    parts = DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration, such as 90s or 1m30s")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def _collects(op: Step) -> bool:
    return (isinstance(op, CreatePods) and op.collect_metrics) or isinstance(op, StopCollectingMetrics)


class _Planner:
    """Fills in the parameters of one workload."""

    def __init__(self, workload: Workload) -> None:
        self._given = workload.params
        self.used: set[str] = set()

    def filled(self, op: Step) -> list[Step]:
        """
        :raises ValueError: it makes no sense, or nobody can do it here
        """
        match op:
            case CreatePodSets():
                op = self._counted(op)
                one = self._pods(op.create_pods_op)
                return [
                    msgspec.structs.replace(one, namespace=f"{op.namespace_prefix}-{number}")
                    for number in range(op.count)
                ]
            case CreatePods():
                return [self._pods(op)]
            case CreateAny():
                return [self._counted(op)]
            case CreateNodes():
                return [self._counted(op)]
            case CreateNamespaces():
                return [self._counted(op)]
            case UpdateAny():
                if op.update_per_second < 0:
                    raise ValueError("updatePerSecond is below 0")
                return [self._counted(op)]
            case Sleep():
                return [self._slept(op)]
            case Churn():
                if not op.template_paths:
                    raise ValueError("templatePaths is empty")
                if op.number < 0 or op.interval_milliseconds < 0 or (op.mode == "recreate" and op.number == 0):
                    raise ValueError("number and intervalMilliseconds may not be below 0, nor number 0 to recreate")
                return [op]
            case DeletePods() if op.delete_pods_per_second < 0:
                raise ValueError("deletePodsPerSecond is below 0")
            case StartCollectingMetrics() if not op.namespaces:
                raise ValueError("namespaces is empty")
            case _ if isinstance(op, DEVICES):
                raise ValueError(gates.NO_DEVICES)
            case _:
                return [op]

    def _pods(self, op: CreatePods) -> CreatePods:
        op = self._counted(op)
        if op.steady_state_param:
            op = msgspec.structs.replace(
                op, steady_state=self._value(op.steady_state_param, bool), steady_state_param=""
            )
        if op.duration_param:
            op = msgspec.structs.replace(op, duration=self._value(op.duration_param, str), duration_param="")
        if op.collect_metrics and op.skip_wait_to_completion:
            raise ValueError("collectMetrics and skipWaitToCompletion exclude each other")
        if op.steady_state and (op.skip_wait_to_completion or seconds(op.duration) <= 0):
            raise ValueError("a steady state needs a duration, and is waited for")
        if (op.persistent_volume_template_path is None) != (op.persistent_volume_claim_template_path is None):
            raise ValueError("templates of volumes and of claims go together")
        return op

    def _slept(self, op: Sleep) -> Sleep:
        duration = str(self._value(op.duration_param, str)) if op.duration_param else op.duration
        seconds(duration)
        return Sleep(duration=duration)

    def _counted(self, op: T) -> T:
        count = op.count
        if op.count_param:
            count = int(self._value(op.count_param, float))
        if not 0 <= count <= MOST:
            raise ValueError(f"count is {count}, which must be from 0 to {MOST}")
        return msgspec.structs.replace(op, count=count, count_param="")

    def _value(self, word: str, kind: type) -> Parameter:
        name = word.removeprefix("$")
        if name == word:
            raise ValueError(f"{word!r} must begin with $, and name a parameter")
        if name not in self._given:
            raise ValueError(f"parameter {word} is not defined")
        self.used.add(name)
        value = self._given[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number if kind is float else isinstance(value, kind)):
            raise ValueError(f"parameter {word} is {value!r}, which is of the wrong type")
        return value
