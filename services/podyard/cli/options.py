"""Options that commands share."""

from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Parameter

from podyard.cli import completing

NatsOption: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--nats",
        completer=completing.labs,
        help="NATS server, or the name of a lab; default: $PODYARD_NATS_SERVERS, the lab that `podyard up` runs, "
        "nats://127.0.0.1:4222.",
    ),
]
NamespaceOption: TypeAlias = Annotated[
    str | None,
    Parameter(
        name=["--namespace", "-n"], completer=completing.named("namespaces"), help="Namespace; default: `default`."
    ),
]
AllNamespacesOption: TypeAlias = Annotated[
    bool, Parameter(name=["--all-namespaces", "-A"], negative="", help="Every namespace.")
]
FilesOption: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"],
        negative="",
        allow_leading_hyphen=True,  # `-f -` is standard input
        show_default=False,
        help="File of objects, a directory of such files, or `-` for standard input; may be repeated.",
    ),
]
SelectorOption: TypeAlias = Annotated[
    str, Parameter(name=["--selector", "-l"], show_default=False, help="Label selector, e.g. `app=web,tier!=test`.")
]
WatchOption: TypeAlias = Annotated[bool, Parameter(name=["--watch", "-w"], negative="", help="Go on with changes.")]
WhyOption: TypeAlias = Annotated[
    str, Parameter(name="--why", show_default=False, help="Reason in words, kept with the change.")
]

KindArgument: TypeAlias = Annotated[str, Parameter(completer=completing.kinds)]
NameArgument: TypeAlias = Annotated[str, Parameter(completer=completing.names)]
PodArgument: TypeAlias = Annotated[str, Parameter(completer=completing.named("pods"))]
NodeArgument: TypeAlias = Annotated[str, Parameter(completer=completing.named("nodes"))]

Output: TypeAlias = Literal["table", "wide", "json", "yaml", "name"]
OutputOption: TypeAlias = Annotated[
    Output, Parameter(name=["--output", "-o"], help="table, wide, json, yaml or name.", show_choices=False)
]
JsonOutputOption: TypeAlias = Annotated[
    Literal["text", "json"], Parameter(name=["--output", "-o"], help="text or json.", show_choices=False)
]

ValidateOption: TypeAlias = Annotated[
    Literal["strict", "warn", "ignore", "true", "false"],
    Parameter(
        name="--validate",
        help="Of unknown and duplicate fields: strict (or true) refuses them all, warn tells them and leaves them out, "
        "ignore (or false) leaves them out.",
        show_choices=False,
    ),
]

DEFAULT_NAMESPACE: Final = completing.DEFAULT_NAMESPACE
