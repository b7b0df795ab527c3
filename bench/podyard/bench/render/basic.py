"""A benchmark's figures as tables."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from podyard.bench.basic import BasicResult
from podyard.cli.render import tables

BAR_WIDTH = 40


def report(result: BasicResult, rates: Sequence[float]) -> RenderableType:
    """What one run did and what it cost; `rates` of all runs, pods per second, sorted."""
    head = Text.assemble(
        (f"{result.pods_per_second_average:,.0f} pods/s", "bold green"),
        f"  {result.pods_bound:,} pods bound on {result.nodes:,} nodes in {result.seconds:.2f} s "
        f"(created in {result.seconds_to_create:.2f} s), "
        f"{result.commits} commits of {result.pods_per_commit:.0f} on average",
    )
    parts: list[RenderableType] = [head]
    if len(rates) > 1:
        parts.append(Text(f"median of {len(rates)} runs: " + ", ".join(f"{rate:,.0f}" for rate in rates), "dim"))
    messages = Text(
        f"messages per pod: {result.messages_stored_per_pod:.2f} stored in CLUSTER, "
        f"{result.messages_to_server_per_pod:.2f} to the server, {result.messages_from_server_per_pod:.2f} from it"
    )
    return Group(*parts, _costs(result), messages, _pace(result))


def _costs(result: BasicResult) -> Table:
    table = tables.figures("PROCESS", "CPU s", "µs/pod", "MiB")
    for name, seconds in sorted(result.cpu_seconds.items(), key=lambda item: -item[1]):
        table.add_row(name, f"{seconds:.2f}", f"{result.cpu_us_per_pod[name]:.0f}", f"{result.memory_mib[name]:.0f}")
    total = sum(result.cpu_seconds.values())
    table.add_row("all", f"{total:.2f}", f"{total / result.pods_bound * 1e6:.0f}", "", style="bold")
    return table


def _pace(result: BasicResult) -> RenderableType:
    """Bindings by second of the clock, as bars."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("SECOND", justify="right")
    table.add_column("BOUND", justify="right")
    table.add_column("")
    most = max(result.bound_in_second)
    for second, bound in enumerate(result.bound_in_second):
        table.add_row(str(second), f"{bound:,}", "█" * round(bound / most * BAR_WIDTH))
    return table
