"""What a plan would create, tried without a bus: each op's files are read, and its first objects admitted."""

from collections.abc import Iterator, Sequence
from typing import Final

from podyard.bench.scheduler_perf import documents
from podyard.bench.scheduler_perf.config import (
    Case,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    Step,
    UpdateAny,
)
from podyard.bench.scheduler_perf.documents import Document, Files
from podyard.bench.scheduler_perf.moulds import NAME, UID
from podyard.bench.scheduler_perf.written import Written
from podyard.cli.errors import InputError
from podyard.objects import admission
from podyard.objects.errors import ObjectError

NAMESPACE: Final = "rehearsal"


def rehearse(case: Case, steps: Sequence[Step], files: Files, *, by_api: bool = False) -> frozenset[int]:
    """
    :return: the priorities that pods say by number
    :raises InputError: a file cannot be read, or nobody would take what it describes; says in which op
    """
    written = Written(lambda: 0.0, by_api=by_api)
    priorities: set[int] = set()
    for number, step in enumerate(steps):
        try:
            for document, namespace in _first(step, case, files):
                if document["kind"] == "Pod" and "priority" in document["spec"]:
                    priorities.add(document["spec"]["priority"])
                if namespace and namespace not in written.namespaces:
                    written.cast(written.mould(documents.namespace(namespace)), namespace)
                name = written.name_for(document["metadata"])
                written.cast(written.mould(document, namespace), name)
        except (InputError, ObjectError) as error:
            opcode = type(step).__struct_config__.tag
            advice = error.advice if isinstance(error, InputError) else ""
            raise InputError(f"op {number} ({opcode}): {error}", advice) from error
    return frozenset(priorities)


def _first(step: Step, case: Case, files: Files) -> Iterator[tuple[Document, str]]:
    """What an op creates first, and the namespace that it names; "": none."""
    match step:
        case CreateNodes() if step.count:
            for document in documents.nodes(step, files, 0, UID, NAME):
                document["metadata"].setdefault("name", NAME)
                yield document, ""
                if document["kind"] != "Node" or step.node_allocatable_strategy is None:
                    return
        case CreateNamespaces() if step.namespace_template_path is not None:
            document = files.typed_plain(step.namespace_template_path, "Namespace")
            document["metadata"]["name"] = step.prefix
            yield document, ""
        case CreatePods() if step.count:
            pod = documents.pod(step, files, case.default_pod_template_path, 0)
            claimed = documents.claimed(step, files, NAMESPACE, 0, pod)
            if claimed is not None:
                yield claimed.claim, NAMESPACE
                yield claimed.volume, ""
            yield pod, NAMESPACE
        case CreateAny() if step.count:
            document = files.document(step.template_path, 0, step.count)
            fit(document, step.namespace, step.template_path)
            yield document, step.namespace
        case UpdateAny() if step.count:
            document = files.document(step.template_path, 0, step.count)
            fit(document, step.namespace, step.template_path)
            if not document["metadata"].get("name"):
                raise InputError(f"{step.template_path}: an object that is to be updated needs a name")
        case Churn():
            for path in step.template_paths:
                document = files.plain(path)
                yield document, NAMESPACE if admission.kind_of(document).namespaced else ""
        case _:
            return


def fit(document: Document, namespace: str, path: str) -> str:
    """Its resource; the op has to name a namespace for what lives in one, and none for what does not.

    :raises InputError: it does not
    """
    kind = admission.kind_of(document)
    if kind.namespaced and not namespace:
        raise InputError(f"{path}: a {kind.kind} lives in a namespace, and the op names none")
    if namespace and not kind.namespaced:
        raise InputError(f"{path}: a {kind.kind} lives in no namespace, and the op names {namespace}")
    return kind.resource
