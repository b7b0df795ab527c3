"""`podyard config`: check and complete a KubeSchedulerConfiguration."""

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import App, Parameter

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.configuration import ConfigurationError

INVALID: Final = 1

WrittenOption: TypeAlias = Annotated[
    Literal["yaml", "json"], Parameter(name=["--output", "-o"], help="yaml or json.", show_choices=False)
]

ABOUT: Final = """Check and complete a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`).

```
podyard config validate scheduler.yaml
podyard config default > scheduler.yaml
```
"""

config = App(name="config", help=ABOUT)


@config.command
def validate(file: str, /, *, output: JsonOutputOption = "text") -> int:
    """Say everything that is wrong with a configuration file, as kube-scheduler v1.36.2 would; exit code 1 if
    anything is.

    Plugins of the form `package.module:Class` are imported, and their methods checked.

    ```
    podyard config validate scheduler.yaml
    kubectl -n kube-system get cm my-scheduler -o jsonpath='{.data.config}' | podyard config validate -
    podyard config validate scheduler.yaml -o json
    ```

    :param file: The file, YAML or JSON; `-` for standard input.
    """
    from podyard.cli import scheduler_configuration
    from podyard.cli.render import configuration as rendered
    from podyard.cli.render import plain
    from podyard.configuration import ConfigurationError

    try:
        found = scheduler_configuration.load(file)
    except ConfigurationError as error:
        if output == "json":
            print(plain.dump(scheduler_configuration.report(error), "json"), end="")
        else:
            _show(file, error)
        return INVALID
    unused = found.unused()
    if output == "json":
        listed = [{"field": one.field, "reason": one.reason} for one in unused]
        print(plain.dump({"valid": True, "effective": found.effective(), "unused": listed}, "json"), end="")
    else:
        print("\n".join(rendered.valid(file, found.effective(), unused)))
    return 0


def _show(file: str, error: "ConfigurationError") -> None:
    from podyard.cli.render import configuration as rendered
    from podyard.cli.render import console

    screen = console.console()
    if screen.is_terminal:
        screen.print(rendered.faults(file, error.stage, error.faults))
    else:
        print("\n".join(rendered.fault_lines(file, error.stage, error.faults)))


@config.command
def default(file: str = "", /, *, output: WrittenOption = "yaml") -> int:
    """Write the complete configuration: what the file says, and every default that it leaves out.

    Without a file: the default configuration. What is written can be used as a file again.

    ```
    podyard config default > scheduler.yaml
    podyard config default scheduler.yaml -o json
    ```

    :param file: The file to complete, YAML or JSON; `-` for standard input; default: none.
    """
    from podyard import configuration
    from podyard.cli import scheduler_configuration
    from podyard.cli.errors import CliError
    from podyard.cli.render import plain
    from podyard.configuration import ConfigurationError

    try:
        found = scheduler_configuration.load(file) if file else configuration.default()
    except ConfigurationError as error:
        told = scheduler_configuration.wrong(file, error)
        raise CliError(told.message, told.advice) from error
    print(plain.dump(found.written(), output), end="")
    return 0
