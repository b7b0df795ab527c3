"""`podyard deschedule`: one cycle of the descheduler on demand."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus


def deschedule(
    *,
    policy: Annotated[str | None, Parameter(name=["--policy", "-p", "--policy-config-file"])] = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    plan: Literal["report", "obey"] | None = None,
    config: Annotated[str | None, Parameter(name=["--config", "-c"])] = None,
    scheduler_config: str | None = None,
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Run one cycle of a DeschedulerPolicy now: who moves, from where, to where, and why; who stays, and why.

    It is the descheduler's own cycle in this process, beside those of the service, with all its limits, and
    evicts as that does, through disruption budgets. Where a pod is going to be is the plan: by its own
    scheduling profile, as things are now. Then how much of nodes is requested, before and as planned. The
    exit code is 1 if a plugin failed, or the cycle went no further.

    ```
    podyard deschedule --policy policy.yaml --dry-run
    podyard deschedule --policy policy.yaml --plan obey
    podyard deschedule --policy policy.yaml --dry-run -o json
    ```

    :param policy: DeschedulerPolicy (YAML or JSON); default: the options file's `descheduler.policy`.
    :param dry_run: Judge and plan only; nothing is evicted.
    :param plan: obey: pods stay that would come back, fare no better or stay pending; report: that is told.
    :param config: Options file (YAML) of the services; default: $PODYARD_CONFIG.
    :param scheduler_config: KubeSchedulerConfiguration that the scheduler runs by.
    """
    from podyard.cli import descheduling, session

    flags: dict[str, Any] = {
        "descheduler.policy": policy,
        "descheduler.dry_run": True if dry_run else None,
        "descheduler.plan": plan,
        "scheduler_config": scheduler_config,
    }
    given = descheduling.chosen(config, {path: value for path, value in flags.items() if value is not None})

    async def work(bus: "Bus") -> int:
        from podyard.cli.render import console, plain
        from podyard.cli.render import deschedule as rendered

        found = rendered.outcome(await descheduling.cycle(bus, given), dry_run=given.own.dry_run, plan=given.own.plan)
        if output == "json":
            print(plain.dump(found, "json"), end="")
        else:
            console.console().print(rendered.view(found))
        return 1 if found.errors or found.ended else 0

    return session.run(nats, work, "descheduler")
