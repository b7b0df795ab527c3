"""The command table, and how errors become text and exit codes."""

import sys
from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError

from podyard.cli.errors import CliError

LAB: Final = "Run"
OBJECTS: Final = "Objects"
EVENTS: Final = "Events and decisions"
OTHER: Final = "Other"

COMMANDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("up", "up", LAB),
    ("run", "run", LAB),
    ("apply", "apply", OBJECTS),
    ("delete", "delete", OBJECTS),
    ("get", "get", OBJECTS),
    ("publish", "publish", EVENTS),
    ("watch", "watch", EVENTS),
    ("explain", "explain", EVENTS),
    ("queue", "queue", EVENTS),
    ("bench", "bench", LAB),
    ("version", "version", OTHER),
    ("completion", "completion", OTHER),
)
"""Name, module in `podyard.cli.commands` (its function has the same name), group in the help."""

ABOUT: Final = """A Kubernetes scheduling plane on NATS that can explain every decision.

Begin with `podyard up --nodes 3` in one terminal; in another, `podyard apply -f pod.yaml`, `podyard get pods`,
`podyard explain pod NAME`. Each command shows examples with `--help`.
"""


def build() -> App:
    """The application; command modules are loaded when they are used."""
    app = App(
        name="podyard",
        help=ABOUT,
        help_format="markdown",
        version_flags=[],
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
    )
    for name, module, group in COMMANDS:
        app.command(f"podyard.cli.commands.{module}:{module}", name=name, group=group)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    :return: exit code: 0 done, 1 failed, 2 wrong input
    """
    try:
        result = build()(list(arguments))
    except CycloptsError as error:
        return _wrong_usage(str(error), arguments)
    except CliError as error:
        _say(error.message, error.advice)
        return error.exit_code
    except BrokenPipeError:
        # whoever read our output has seen enough, as `| head` does
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    return result if isinstance(result, int) else 0


def _wrong_usage(message: str, arguments: Sequence[str]) -> int:
    known = {name for name, _, _ in COMMANDS}
    command = f"podyard {arguments[0]}" if arguments and arguments[0] in known else "podyard"
    _say(message.strip(), f"see {command} --help")
    return 2


def _say(message: str, advice: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"error: {message}\n")
    if advice:
        sys.stderr.write(f"hint: {advice}\n")
