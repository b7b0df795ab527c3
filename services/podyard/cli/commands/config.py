"""`podyard config`: check and complete a file that services run by."""

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import App, Parameter

from podyard.cli.options import JsonOutputOption

if TYPE_CHECKING:
    from podyard.configuration import ConfigurationError

INVALID: Final = 1

WrittenOption: TypeAlias = Annotated[
    Literal["yaml", "json"], Parameter(name=["--output", "-o"], help="yaml or json.", show_choices=False)
]


def _no_option(kind: object, file: str) -> None:
    if file.startswith("-") and file != "-":
        raise ValueError(f"no such option: {file}; a file of that name is ./{file}")


FileArgument: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_no_option)]
"""`-` alone is standard input."""

ABOUT: Final = """Check and complete a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`), a
DeschedulerPolicy (`descheduler/v1alpha2`) or a KubeletConfiguration (`kubelet.config.k8s.io/v1beta1`).

```
podyard config validate scheduler.yaml
podyard config validate policy.yaml
podyard config default > scheduler.yaml
```
"""

config = App(name="config", help=ABOUT)


@config.command
def validate(file: FileArgument, /, *, output: JsonOutputOption = "text") -> int:
    """Say everything that is wrong with a configuration file, as kube-scheduler and kubelet v1.36.2 and the
    descheduler v0.36.0 would; exit code 1 if anything is.

    Plugins of the form `package.module:Class` are imported, and their methods checked.

    ```
    podyard config validate scheduler.yaml
    kubectl -n kube-system get cm my-scheduler -o jsonpath='{.data.config}' | podyard config validate -
    podyard config validate scheduler.yaml -o json
    ```

    :param file: The file, YAML or JSON; `-` for standard input.
    """
    from podyard.cli import configuration_files, scheduler_configuration
    from podyard.cli.render import configuration as rendered
    from podyard.cli.render import plain
    from podyard.configuration import ConfigurationError

    try:
        found = configuration_files.load(file)
    except ConfigurationError as error:
        if output == "json":
            print(plain.dump(scheduler_configuration.report(error), "json"), end="")
        else:
            _show(file, error)
        return INVALID
    called, remarks = found.remarks
    if output == "json":
        listed = [{"field": one.field, "reason": one.reason} for one in remarks]
        print(plain.dump({"valid": True, "effective": found.effective, called: listed}, "json"), end="")
    else:
        print("\n".join(rendered.valid(file, found.summary, called, remarks)))
    return 0


def _show(file: str, error: "ConfigurationError") -> None:
    from podyard.cli.render import configuration as rendered
    from podyard.cli.render import console

    screen = console.console()
    if screen.is_terminal:
        screen.print(rendered.faults(file, error))
    else:
        print("\n".join(rendered.fault_lines(file, error)))


@config.command
def default(file: FileArgument = "", /, *, output: WrittenOption = "yaml") -> int:
    """Write the complete configuration: what the file says, and every default that it leaves out.

    Without a file: the default configuration of the scheduler. What is written can be used as a file again.

    ```
    podyard config default > scheduler.yaml
    podyard config default scheduler.yaml -o json
    ```

    :param file: The file to complete, YAML or JSON; `-` for standard input; default: none.
    """
    from podyard import configuration
    from podyard.cli import configuration_files, scheduler_configuration
    from podyard.cli.errors import CliError
    from podyard.cli.render import plain
    from podyard.configuration import ConfigurationError

    try:
        written = configuration_files.load(file).written if file else configuration.default().written()
    except ConfigurationError as error:
        told = scheduler_configuration.wrong(file, error)
        raise CliError(told.message, told.advice) from error
    print(plain.dump(written, output), end="")
    return 0
