"""`podyard bench growth`: memory of every process while changes come."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from podyard.bench.commands import measuring
from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.bench.growth import GrowthResult

FEWEST_CHANGES: Final = 1000
MOST_DIVIDED: Final = 30
"""A marker must outlive half a minute without contact."""
POLICY: Final = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: growth
  pluginConfig:
  - name: DefaultEvictor
    args: {}
  - name: RemovePodsViolatingNodeTaints
    args: {}
  plugins:
    deschedule:
      enabled: [RemovePodsViolatingNodeTaints]
"""
"""Looks at every pod and evicts hardly any."""


def growth(
    *,
    changes: int = 1_800_000,
    nodes: int = 60,
    pods: int = 2500,
    retention_divided_by: int = 10,
    minutes: float = 240,
    plot: Annotated[str, Parameter(show_default=False)] = "",
    again: Annotated[str, Parameter(show_default=False)] = "",
    data: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """Memory of every process while changes come for a long time: all services and a NATS server.

    Pods are created, bound, relabelled, fail and are deleted, nodes get new taints, labels and resources,
    each with names that nobody has seen before; as many live at the end as at the beginning. What is told is
    how much each process grows over the second half.

    ```
    podyard bench growth --changes 100000
    podyard bench growth --plot docs/growth.svg -o json > docs/growth.json
    podyard bench growth --again docs/growth.json --plot growth.png
    ```

    :param changes: Changes that CLUSTER is to store: those that are played, and what services make of them.
    :param minutes: End the run after so long, however far it is.
    :param nodes: Nodes; the benchmark plays the agents of every other one.
    :param pods: Pods that live at a time.
    :param retention_divided_by: Markers, records and message ids are kept for this part of the usual time, so
        that the run sees them go.
    :param plot: Draw the run into this file, .svg or .png.
    :param again: Play nothing: show a run that was kept with -o json.
    :param data: Directory that keeps logs and streams; default: a temporary one.
    """
    from podyard.bench import pictures
    from podyard.bench.render import growth as shown_growth
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    if changes < FEWEST_CHANGES or nodes < 1 or pods < 1 or minutes <= 0:
        raise InputError(f"--changes must be at least {FEWEST_CHANGES}, --nodes, --pods and --minutes above 0")
    if not 1 <= retention_divided_by <= MOST_DIVIDED:
        raise InputError(f"--retention-divided-by must be from 1 to {MOST_DIVIDED}")
    pictures.check(plot)
    found = (
        _kept(Path(again)) if again else measuring.run(_one, changes, minutes, nodes, pods, retention_divided_by, data)
    )
    if plot:
        _draw(found, Path(plot))
    if output == "json":
        print(plain.dump(found, "json"), end="")
    else:
        console.console().print(shown_growth.report(found))
    return 0


def _kept(file: Path) -> "GrowthResult":
    import msgspec

    from podyard.bench.growth import GrowthResult
    from podyard.cli.errors import InputError

    try:
        return msgspec.json.decode(file.read_bytes(), type=GrowthResult)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}", "is the name right?") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: no run of `podyard bench growth -o json`: {error}") from error


def _draw(found: "GrowthResult", picture: Path) -> None:
    from podyard.bench import pictures

    with pictures.drawing(picture):
        from podyard.bench.render import growth_picture

        growth_picture.draw(found, picture)
    print(f"{picture}: memory over {found.changes:,} changes", file=sys.stderr)


async def _one(changes: int, minutes: float, nodes: int, pods: int, divided_by: int, data: str) -> "GrowthResult":
    import tempfile

    from podyard.bench import churn
    from podyard.bench import growth as measured
    from podyard.bench.render import growth as shown_growth
    from podyard.bench.render import progress
    from podyard.bus import BusSettings, connect
    from podyard.cli.lab import plan
    from podyard.cli.lab.lab import LabOptions, running_lab

    retention = churn.retention(divided_by)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as policy, progress.bar("growth") as bar:
        policy.write(POLICY)
        policy.flush()
        environment = {**churn.variables(retention), "PODYARD_DESCHEDULER_POLICY": policy.name}
        environment["PODYARD_DESCHEDULER_INTERVAL_S"] = "30"
        options = LabOptions(services=plan.parse(""), data_dir=data, environment=environment, log_level="warning")
        async with running_lab(options) as lab:
            await lab.until_ready(measuring.READY_WITHIN_S)
            settings = BusSettings(
                servers=(lab.url,), name="podyard-bench", service="cli", marker_ttl_s=retention["markers_s"]
            )
            pids = {child.service: child.pid for child in lab.children} | {"nats-server": lab.server.pid}
            async with connect(settings) as bus:
                run = measured.Growth(
                    bus, pids, nodes=nodes, living=pods, tell=lambda sample: shown_growth.show(bar, sample, changes)
                )
                samples = await run.run(changes, minutes * 60)
    return measured.result(samples, nodes=nodes, living=pods, divided_by=divided_by)
