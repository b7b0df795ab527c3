"""The file that describes cases, each a list of ops and workloads that give its parameters. Nothing that is
not known is accepted.

Source: kubernetes v1.36.2, test/integration/scheduler_perf/scheduler_perf.go (testCase, Workload),
operations.go, update.go, dra.go.
"""

from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from podyard.cli.errors import InputError
from podyard.objects import yaml_reader
from podyard.objects.yaml_reader import YamlError

LARGEST_BYTES: Final = 4 * 1024**2
"""Of a file that is read: the reference's largest has 40 KB."""

Parameter: TypeAlias = bool | int | float | str


class Op(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="opcode"):
    """One step of a case."""


class CreateAny(Op, frozen=True, tag="createAny"):
    """Objects of a file, of any kind."""

    template_path: str
    namespace: str = ""
    count: int = 1
    count_param: str = ""


class VolumeLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """VolumeNodeResources of a CSINode's driver."""

    count: int | None = None


class NodeAllocatable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Further resources of nodes, and what their drivers take."""

    node_allocatable: dict[str, str] = {}
    csi_node_allocatable: dict[str, VolumeLimits] = {}
    migrated_plugins: tuple[str, ...] = ()


class LabelNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A label whose values take turns."""

    label_key: str
    label_values: tuple[str, ...]


class UniqueLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A label with another value on each node."""

    label_key: str


class CreateNodes(Op, frozen=True, tag="createNodes"):
    """Nodes."""

    count: int = 0
    count_param: str = ""
    node_template_path: str | None = None
    node_allocatable_strategy: NodeAllocatable | None = None
    label_node_prepare_strategy: LabelNodes | None = None
    unique_node_label_strategy: UniqueLabel | None = None


class CreateNamespaces(Op, frozen=True, tag="createNamespaces"):
    """Namespaces `prefix-0`, `prefix-1`, ..."""

    prefix: str
    count: int = 0
    count_param: str = ""
    namespace_template_path: str | None = None


class CreatePods(Op, frozen=True, tag="createPods"):
    """Pods, and unless told otherwise waiting until they are bound."""

    count: int = 0
    count_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: str = ""
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str | None = None
    pod_template_path: str | None = None
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None


class CreatePodSets(Op, frozen=True, tag="createPodSets"):
    """The same pods in `namespacePrefix-0`, `namespacePrefix-1`, ..."""

    namespace_prefix: str
    create_pods_op: CreatePods
    count: int = 0
    count_param: str = ""


class DeletePods(Op, frozen=True, tag="deletePods"):
    """Deletes pods of a namespace."""

    namespace: str
    label_selector: dict[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


class Churn(Op, frozen=True, tag="churn"):
    """Creates objects at intervals while the following ops run, in mode recreate also deletes them."""

    mode: Literal["create", "recreate"]
    template_paths: tuple[str, ...]
    number: int = 0
    interval_milliseconds: int = 0
    namespace: str | None = None


class Barrier(Op, frozen=True, tag="barrier"):
    """Waits for pods that were not waited for."""

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = {}
    stage_requirement: Literal["", "Scheduled", "Attempted"] = ""


class Sleep(Op, frozen=True, tag="sleep"):
    """Waits for a time."""

    duration: str = ""
    duration_param: str = ""


class UpdateAny(Op, frozen=True, tag="updateAny"):
    """Replaces objects, and their status, by what a file says."""

    template_path: str
    namespace: str = ""
    count: int = 1
    count_param: str = ""
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()


class StartCollectingMetrics(Op, frozen=True, tag="startCollectingMetrics"):
    """The measured part begins."""

    namespaces: tuple[str, ...]
    name: str = ""
    label_selector: dict[str, str] = {}


class StopCollectingMetrics(Op, frozen=True, tag="stopCollectingMetrics"):
    """The measured part ends."""


class _OfDevices(msgspec.Struct, frozen=True, tag_field="opcode"):
    """An op of dynamic resource allocation: it is known so that it can be refused in words."""


class AllocResourceClaims(_OfDevices, frozen=True, tag="allocResourceClaims"):
    """Allocates claims."""


class CreateResourceClaims(_OfDevices, frozen=True, tag="createResourceClaims"):
    """Creates claims."""


class CreateResourceDriver(_OfDevices, frozen=True, tag="createResourceDriver"):
    """Publishes devices."""


DEVICES: Final = (AllocResourceClaims, CreateResourceClaims, CreateResourceDriver)

Step: TypeAlias = (
    CreateAny
    | CreateNodes
    | CreateNamespaces
    | CreatePods
    | CreatePodSets
    | DeletePods
    | Churn
    | Barrier
    | Sleep
    | UpdateAny
    | StartCollectingMetrics
    | StopCollectingMetrics
    | AllocResourceClaims
    | CreateResourceClaims
    | CreateResourceDriver
)


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Parameters of a case."""

    name: str
    params: dict[str, Parameter] = {}
    labels: tuple[str, ...] = ()
    threshold: float | dict[str, float] = 0.0
    """Pods a second below which the reference calls a run failed; no goal of ours."""
    feature_gates: dict[str, bool] = {}


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A list of ops, and workloads that it is run with."""

    name: str
    workload_template: tuple[Step, ...]
    workloads: tuple[Workload, ...]
    feature_gates: dict[str, bool] = {}
    default_pod_template_path: str | None = None
    scheduler_config_path: str = ""
    labels: tuple[str, ...] = ()


def read(file: Path) -> tuple[Case, ...]:
    """All cases of a file.

    :raises InputError: it cannot be read, or has something that is not known; says where
    """
    return decode(str(file), text_of(file))


def decode(source: str, text: str) -> tuple[Case, ...]:
    """The same, of a text.

    :param source: what errors call it
    :raises InputError: as above
    """
    try:
        documents = list(yaml_reader.read(text))
    except YamlError as error:
        raise InputError(f"{source}: {error}") from error
    content: Any = documents[0].content if len(documents) == 1 else None
    if not isinstance(content, list):
        raise InputError(f"{source}: expected one YAML document with a list of cases")
    try:
        cases = msgspec.convert(content, tuple[Case, ...])
    except msgspec.ValidationError as error:
        raise InputError(f"{source}: {error}", "the files are those of kubernetes v1.36.2") from error
    for what, names in (
        ("case", [case.name for case in cases]),
        *((f"workload of {case.name}", [one.name for one in case.workloads]) for case in cases),
    ):
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{source}: there are two of the {what} {name}")
    return cases


def text_of(file: Path, most_bytes: int = LARGEST_BYTES) -> str:
    """What a file holds.

    :raises InputError: it cannot be read, or is too large
    """
    try:
        with file.open("rb") as opened:
            found = opened.read(most_bytes + 1)
        if len(found) > most_bytes:
            raise InputError(f"{file}: larger than {most_bytes} bytes")
        return found.decode()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}", "is the name right?") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text (byte {error.start})") from error


def chosen(cases: tuple[Case, ...], name: str) -> tuple[Case, Workload]:
    """The case and workload that `NAME/WORKLOAD` names; a workload's name may have slashes.

    :raises InputError: there is no such one
    """
    case_name, _, workload_name = name.partition("/")
    for case in cases:
        if case.name == case_name:
            for workload in case.workloads:
                if workload.name == workload_name:
                    return case, workload
            raise InputError(
                f"--case {name}: {case_name} has no workload {workload_name!r}",
                "it has " + ", ".join(one.name for one in case.workloads),
            )
    raise InputError(f"--case {name}: no case is called {case_name!r}", "--list shows what there is")
