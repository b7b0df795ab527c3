"""`podyard bench trace`: a recorded workload, replayed."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from podyard.bench.commands import measuring
from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.bench.replay.plan import Plan
    from podyard.bench.replay.result import Outcome, Replay

MOST_SPEEDUP: Final = 1e9
MOST_CONFIGS: Final = 4
STANDARD_INPUT: Final = "-"


def trace(
    form: Literal["openb"],
    pods: str,
    nodes: str,
    /,
    *,
    speedup: float,
    begins: Annotated[int, Parameter(name="--from")] = 0,
    stay: Annotated[bool, Parameter(negative=())] = False,
    one_node_in: int = 1,
    config: Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)] = (),
    plot: Annotated[str, Parameter(show_default=False)] = "",
    data: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """A recorded workload, replayed: how full nodes are, what of their free GPUs nobody can use, and how long
    pods wait.

    Services and a NATS server are started for each configuration. Pods are created and deleted when they
    were, so many times as fast; waiting is told in time of the replay.

    Both files of `openb` are CSV with a header, its columns in any order, none missing and none more. Nodes:
    `sn` (the name), `cpu_milli`, `memory_mib`, `gpu` (how many), `model` (of its GPUs). Pods: `name`,
    `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli` (thousandths of each of them, below 1000 only of a
    single one), `gpu_spec` (models it takes, `A|B`; empty: any), `qos`, `pod_phase`, `creation_time`,
    `deletion_time`, `scheduled_time` (seconds; empty: never scheduled).

    ```
    podyard bench trace openb pods.csv nodes.csv --speedup 40000
    podyard bench trace openb pods.csv nodes.csv --speedup 40000 --stay --config least.yaml --config most.yaml
    podyard bench trace openb pods.csv nodes.csv --speedup 2000 --from 12000000 --plot replay.svg -o json
    ```

    :param form: What the files are: `openb`, the GPU trace of alibaba/clusterdata.
    :param pods: File of pods.
    :param nodes: File of nodes.
    :param speedup: Seconds of the recording in one of the replay.
    :param begins: Second of the recording at which the replay begins; pods that live then come first.
    :param stay: Delete nothing: the cluster fills up.
    :param one_node_in: Keep one of so many equal nodes, so that there is less room.
    :param config: KubeSchedulerConfiguration to replay with; may be repeated, then one after the other.
    :param plot: Draw use, fragments and waiting into this file, .svg or .png.
    :param data: Directory that keeps the last replay's logs and streams; default: a temporary one.
    """
    from podyard.bench import pictures
    from podyard.bench.render import replay as shown
    from podyard.bench.replay import openb, plan
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if not 0 < speedup <= MOST_SPEEDUP:
        raise InputError(f"--speedup {speedup:g}: must be above 0 and at most {MOST_SPEEDUP:g}")
    if begins < 0 or one_node_in < 1:
        raise InputError("--from must be at least 0, --one-node-in at least 1")
    pictures.check(plot)
    _check(config)
    planned = plan.plan(openb.read(Path(pods), Path(nodes)), speedup, begins=begins, stay=stay, one_node_in=one_node_in)
    outcome = _played(planned, (form, pods, nodes), config, data, stay=stay, one_node_in=one_node_in)
    if plot:
        with pictures.drawing(Path(plot)):
            from podyard.bench.render import replay_picture

            replay_picture.draw(outcome, Path(plot))
        print(f"{plot}: {len(outcome.runs)} {'replay' if len(outcome.runs) == 1 else 'replays'}", file=sys.stderr)
    if output == "json":
        for fault in shown.faults(outcome):
            print(fault, file=sys.stderr)
        print(plain.dump(outcome, "json"), end="")
    else:
        console.console().print(shown.report(outcome))
    return 1 if shown.faults(outcome) else 0


def _check(configs: tuple[str, ...]) -> None:
    """
    :raises InputError: the services could not run by one of them, or nobody would schedule the pods
    """
    from podyard.cli import scheduler_configuration
    from podyard.cli.errors import InputError
    from podyard.configuration import ConfigurationError
    from podyard.proto.message import DEFAULT_SCHEDULER

    if len(configs) > MOST_CONFIGS or len(set(configs)) < len(configs):
        raise InputError(f"--config: name at most {MOST_CONFIGS} files, each once")
    for name in configs:
        if name == STANDARD_INPUT:
            raise InputError("--config -: the services read it themselves, so it has to be a file")
        try:
            profiles = scheduler_configuration.of(scheduler_configuration.text_of(name)).profiles()
        except ConfigurationError as error:
            raise scheduler_configuration.wrong(name, error) from error
        if DEFAULT_SCHEDULER not in profiles:
            raise InputError(
                f"--config {name}: has no profile {DEFAULT_SCHEDULER}, by which the pods are to be scheduled, but "
                f"{', '.join(profiles)}",
                f"name one of them so: profiles[].schedulerName: {DEFAULT_SCHEDULER}",
            )


def _played(
    planned: "Plan", names: tuple[str, str, str], configs: tuple[str, ...], data: str, *, stay: bool, one_node_in: int
) -> "Outcome":
    from podyard.bench import history, machine
    from podyard.bench.render import progress
    from podyard.bench.replay import result, running
    from podyard.runtime import clock

    setting = result.setting(
        planned,
        names=names,
        stay=stay,
        one_node_in=one_node_in,
        at=clock.now(),
        machine=machine.this_machine(),
        commit=history.commit(),
    )
    runs: list[Replay] = []
    for config in configs or ("",):
        with progress.bar(Path(config).stem or names[0]) as bar:
            runs.append(measuring.run(running.replay, planned, config, data, bar.show))
    return result.Outcome(trace=setting, runs=tuple(runs))
