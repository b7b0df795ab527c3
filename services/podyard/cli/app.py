"""The command table, and how errors become text and exit codes."""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Final

from cyclopts import App, CycloptsError, Group

from podyard.cli.errors import CliError

LAB: Final = Group("Run", sort_key=1)
OBJECTS: Final = Group("Objects", sort_key=2)
EVENTS: Final = Group("Events and decisions", sort_key=3)
OTHER: Final = Group("Other", sort_key=4)

COMMANDS: Final[tuple[tuple[str, str, Group], ...]] = (
    ("demo", "demo", LAB),
    ("up", "up", LAB),
    ("labs", "labs", LAB),
    ("kubeconfig", "kubeconfig", LAB),
    ("run", "run", LAB),
    ("apply", "apply", OBJECTS),
    ("delete", "delete", OBJECTS),
    ("evict", "evict", OBJECTS),
    ("deschedule", "deschedule", OBJECTS),
    ("get", "get", OBJECTS),
    ("mend", "mend", OBJECTS),
    ("publish", "publish", EVENTS),
    ("watch", "watch", EVENTS),
    ("explain", "explain", EVENTS),
    ("trace", "trace", EVENTS),
    ("queue", "queue", EVENTS),
    ("eviction", "eviction", EVENTS),
    ("pressure", "pressure", EVENTS),
    ("top", "top", EVENTS),
    ("bench", "bench", LAB),
    ("security", "security", LAB),
    ("backup", "backup", OTHER),
    ("restore", "restore", OTHER),
    ("config", "config", OTHER),
    ("checks", "checks", OTHER),
    ("version", "version", OTHER),
    ("completion", "completion", OTHER),
)
"""Name, module in `podyard.cli.commands` (its function has the same name), group in the help."""

ABOUT: Final = """A Kubernetes scheduling plane on NATS that can explain every decision.

Begin with `podyard up --nodes 3` in one terminal; in another, `podyard apply -f pod.yaml`, `podyard get pods`,
`podyard explain pod NAME`. Each command shows examples with `--help`.
"""


def build(*, load_all: bool = False) -> App:
    """The application.

    :param load_all: load every command's module now, for its summary in the list of commands; else when it is
        used
    """
    app = App(
        name="podyard",
        help=ABOUT,
        help_format="markdown",
        version_flags=[],
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        group_commands=OTHER,
    )
    for name, module, group in COMMANDS:
        place = f"podyard.cli.commands.{module}"
        if load_all:
            _add_loaded(app, getattr(importlib.import_module(place), module), name, group)
        else:
            app.command(f"{place}:{module}", name=name, group=group)
    return app


def _add_loaded(app: App, command: App | Callable[..., int], name: str, group: Group) -> None:
    """Add a command's function, or its application if it has commands of its own."""
    if isinstance(command, App):
        command.group = group
        app.command(command, name=name)
    else:
        app.command(command, name=name, group=group)


def run(arguments: Sequence[str]) -> int:
    """Run one command line.

    :return: exit code: 0 done, 1 failed, 2 wrong input
    """
    try:
        if arguments and arguments[0] == "run":
            from podyard.cli.reference_flags import normalized

            arguments = normalized(arguments)
        elif arguments and arguments[0] == "explain":
            from podyard.cli.commands.would_go import spelled_out

            arguments = spelled_out(arguments)
        wants_list = not arguments or arguments[0] in ("--help", "-h")
        result = build(load_all=wants_list)(list(arguments))
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
