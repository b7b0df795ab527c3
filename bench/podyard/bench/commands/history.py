"""`podyard bench history`: what `podyard bench all` found, commit by commit."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.bench.performance import Entry


def history(
    file: Annotated[str, Parameter(show_default=False)] = "",
    /,
    *,
    plot: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
) -> int:
    """What the measurements so far found: throughput, CPU by process and counts, commit by commit. Only those
    of one machine are compared.

    ```
    podyard bench history
    podyard bench history /tmp/performance.json -o json
    podyard bench history --plot performance.svg
    ```

    :param file: The history; default: docs/performance.json of the checkout that this program is run from.
    :param plot: Draw it into this file, .svg or .png, instead of showing tables.
    """
    from podyard.bench import history as kept
    from podyard.bench import pictures
    from podyard.bench.render import history as shown_history
    from podyard.cli.errors import InputError
    from podyard.cli.render import console, plain

    pictures.check(plot)
    found = Path(file) if file else kept.find()
    if found is None:
        raise InputError(
            f"this podyard is run from no checkout with a {kept.PLACE}", "name the file: podyard bench history FILE"
        )
    entries = kept.read(found)
    if plot:
        _draw(found, entries, Path(plot))
    elif output == "json":
        print(plain.dump(entries, "json"), end="")
    else:
        console.console().print(shown_history.report(entries, str(found)))
    return 0


def _draw(history: Path, entries: "Sequence[Entry]", picture: Path) -> None:
    from podyard.bench import pictures
    from podyard.cli.errors import InputError

    if not entries:
        raise InputError(f"{history} has no entries: there is nothing to draw", "make bench adds one")
    with pictures.drawing(picture):
        from podyard.bench.render import history_picture

        history_picture.draw(entries, picture)
    print(f"{picture}: {len(entries)} {'entry' if len(entries) == 1 else 'entries'} of {history}")
