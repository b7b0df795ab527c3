"""`podyard apply`: create or replace objects from files."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from podyard.cli.options import (
    FilesOption,
    NamespaceOption,
    NatsOption,
    OutputOption,
    ValidateOption,
    WhyOption,
)

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.objects.manifests import Manifest
    from podyard.proto.objects_api import ObjectResult, Validation


def apply(
    *,
    files: FilesOption = (),
    namespace: NamespaceOption = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    output: OutputOption = "table",
    validate: ValidateOption = "strict",
    why: WhyOption = "",
    nats: NatsOption = None,
) -> int:
    """Create or replace objects: Kubernetes manifests in YAML or JSON, many documents or Lists.

    All documents are checked first. If one is wrong, nothing is applied; the error names file, document and
    field of all that is wrong, and the exit code is 2. Status and what admission set stay as they are. What
    nothing here acts on is stored, and told once for each kind.

    ```
    podyard apply -f web.yaml
    podyard apply -f manifests/ -n staging --why "new image"
    kubectl get nodes -o json | podyard apply -f -
    podyard apply -f web.yaml --dry-run -o json
    ```

    :param dry_run: Check and say what would happen; write nothing.
    """
    from podyard.cli import files as file_reader
    from podyard.cli import session
    from podyard.cli.errors import InputError, listed

    if not files:
        raise InputError("nothing to apply", "name a file: podyard apply -f FILE")
    validation: Validation = _VALIDATIONS.get(validate, "strict")
    contents = file_reader.read_contents(files)
    wrong = [*(contents.duplicates if validation == "strict" else ()), *contents.faults]
    faults = [str(fault) for fault in wrong]
    manifests: list[Manifest] = []
    for manifest in contents.manifests:
        try:
            file_reader.settle_namespace(manifest, namespace)
            manifests.append(manifest)
        except InputError as error:
            faults.append(error.message)

    async def work(bus: "Bus") -> int:
        if faults:
            faults.extend(await _further_faults(bus, manifests, validation))
            raise InputError(listed(faults), file_reader.NOT_APPLIED)
        results = await _apply(bus, manifests, why=why, dry_run=dry_run, validation=validation)
        told = [f'duplicate field "{fault.field}"' for fault in contents.duplicates if validation == "warn"]
        _warn([*told, *(warning for result in results for warning in result.warnings)])
        _print(manifests, results, output, dry_run=dry_run)
        return 0

    if faults and not manifests:
        raise InputError(listed(faults), file_reader.NOT_APPLIED)
    return session.run(nats, work)


_VALIDATIONS: "Final[Mapping[str, Validation]]" = {"warn": "warn", "ignore": "ignore", "false": "ignore"}
"""Other words mean strict. Source: kubectl/pkg/cmd/util/helpers.go, GetValidationDirective."""


async def _further_faults(bus: "Bus", manifests: "list[Manifest]", validation: "Validation") -> list[str]:
    """What the api would say of the objects that can be read; nothing if it cannot be asked."""
    from podyard.bus.errors import BusError
    from podyard.cli import objects_client
    from podyard.cli.errors import CliError

    documents = [manifest.document for manifest in manifests]
    try:
        results = await objects_client.apply(
            bus, documents, dry_run=True, validation=validation, timeout_s=_FURTHER_FAULTS_S
        )
    except (BusError, CliError):
        return []
    return _faults(manifests, results)


_FURTHER_FAULTS_S: Final = 5.0
"""Seconds for each request: the files have faults anyhow."""


def _warn(warnings: list[str]) -> None:
    """Each once, beside the output, which may be read by programs."""
    import sys

    for warning in dict.fromkeys(warnings):
        sys.stderr.write(f"warning: {warning}\n")


async def _apply(
    bus: "Bus", manifests: "list[Manifest]", *, why: str, dry_run: bool, validation: "Validation"
) -> "list[ObjectResult]":
    """
    :raises InputError: an object is refused; nothing was written
    """
    from podyard.cli import objects_client
    from podyard.cli.errors import InputError

    documents = [manifest.document for manifest in manifests]
    if len(documents) > 1 and not dry_run and _one_request_is_not_enough(documents):
        # one request is all or nothing by itself; of several, the first must not be written if the last is
        # refused
        _check(manifests, await objects_client.apply(bus, documents, why=why, dry_run=True, validation=validation))
    results = await objects_client.apply(bus, documents, why=why, dry_run=dry_run, validation=validation)
    _check(manifests, results)
    if not results:
        raise InputError("the api gave no results")
    return results


def _one_request_is_not_enough(documents: list[dict[str, Any]]) -> bool:
    import msgspec

    from podyard.cli import objects_client

    return len(list(objects_client.pieces([msgspec.json.encode(document) for document in documents]))) > 1


def _check(manifests: "list[Manifest]", results: "list[ObjectResult]") -> None:
    """
    :raises InputError: with file, document and field of every fault
    :raises CliError: no object has a fault, and yet they were not written, for instance because NATS has no
        room
    """
    from podyard.cli import objects_client
    from podyard.cli.errors import CliError, InputError, listed
    from podyard.telling import words

    refused = [
        (manifest, result)
        for manifest, result in zip(manifests, results, strict=False)
        if result.outcome not in objects_client.GOOD
    ]
    if not refused:
        return
    if faults := _faults(manifests, results):
        # without a fault of their own the others were refused because of those that have one
        raise InputError(listed(faults), "nothing of it was applied")
    raise CliError(
        listed(
            [str(manifest.fault("", result.message or words.spoken(result.outcome))) for manifest, result in refused]
        )
    )


def _faults(manifests: "list[Manifest]", results: "list[ObjectResult]") -> list[str]:
    """All that is wrong with objects, where each is."""
    return [
        str(manifest.fault(fault.field, fault.detail))
        for manifest, result in zip(manifests, results, strict=False)
        for fault in result.errors
    ]


def _print(manifests: "list[Manifest]", results: "list[ObjectResult]", output: str, *, dry_run: bool) -> None:
    from podyard.cli.render import plain
    from podyard.telling import names

    if output in ("json", "yaml"):
        print(plain.dump([plain.builtins(result) for result in results], output), end="")
        return
    suffix = " (dry run)" if dry_run else ""
    for manifest, result in zip(manifests, results, strict=True):
        full = names.of_kind(manifest.kind, result.name)
        print(full if output == "name" else f"{full} {result.outcome}{suffix}")
