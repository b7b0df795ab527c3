"""`podyard apply`: create or replace objects from files."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from podyard.cli.options import DEFAULT_NAMESPACE, FilesOption, NamespaceOption, NatsOption, OutputOption, WhyOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.objects.manifests import Manifest
    from podyard.proto.objects_api import ObjectResult


def apply(
    *,
    files: FilesOption = (),
    namespace: NamespaceOption = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    output: OutputOption = "table",
    why: WhyOption = "",
    nats: NatsOption = None,
) -> int:
    """Create or replace objects: Kubernetes manifests in YAML or JSON, many documents or Lists.

    All documents are checked first. If one is wrong, nothing is applied; the error names file, document and
    field, and the exit code is 2. Status and what admission set stay as they are.

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
    from podyard.cli.errors import InputError

    if not files:
        raise InputError("nothing to apply", "name a file: podyard apply -f FILE")
    manifests = file_reader.read_all(files)
    for manifest in manifests:
        _settle_namespace(manifest, namespace)

    async def work(bus: "Bus") -> int:
        return await _apply(bus, manifests, why=why, dry_run=dry_run, output=output)

    return session.run(nats, work)


def _settle_namespace(manifest: "Manifest", wanted: str | None) -> None:
    """Give a namespaced object the namespace it is to live in.

    :raises InputError: it names another than `--namespace`
    """
    from podyard.cli.errors import InputError

    metadata = manifest.document["metadata"]
    present: str = metadata.get("namespace", "")
    custom = manifest.kind.custom
    if not (manifest.kind.namespaced and (not custom or present or wanted)):
        return
    if wanted and present and present != wanted:
        fault = manifest.fault("metadata.namespace", f'is "{present}", but --namespace says "{wanted}"')
        raise InputError(str(fault), "leave one of them out")
    metadata["namespace"] = present or wanted or DEFAULT_NAMESPACE


async def _apply(bus: "Bus", manifests: "list[Manifest]", *, why: str, dry_run: bool, output: str) -> int:
    from podyard.cli import objects_client
    from podyard.cli.errors import InputError

    documents = [manifest.document for manifest in manifests]
    if len(documents) > 1 and not dry_run and _one_request_is_not_enough(documents):
        # one request is all or nothing by itself; of several, the first must not be written if the last is
        # refused
        _check(manifests, await objects_client.apply(bus, documents, why=why, dry_run=True))
    results = await objects_client.apply(bus, documents, why=why, dry_run=dry_run)
    _check(manifests, results)
    if not results:
        raise InputError("the api gave no results")
    _print(manifests, results, output, dry_run=dry_run)
    return 0


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
    faults = [str(manifest.fault(fault.field, fault.detail)) for manifest, result in refused for fault in result.errors]
    if faults:
        # without a fault of their own the others were refused because of those that have one
        raise InputError(listed(faults), "nothing of it was applied")
    raise CliError(
        listed(
            [str(manifest.fault("", result.message or words.spoken(result.outcome))) for manifest, result in refused]
        )
    )


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
