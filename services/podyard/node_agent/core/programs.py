"""What of a pod can run as processes of a host: commands with literal arguments and environment, as users
that are not root. Everything else of a pod is refused, with its path.

Sources: kubernetes v1.36.2, pkg/kubelet/container/helpers.go (ExpandContainerCommandAndArgs),
third_party/forked/golang/expansion/expand.go, pkg/kubelet/kuberuntime/security_context.go.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from podyard.objects.documents import Document, mapping, mappings
from podyard.objects.meta import ResourceList
from podyard.objects.pod import Pod
from podyard.objects.quantity import milli, value

NOBODY: Final = 65534
"""User and group of who names none."""
MOST_FAULTS: Final = 10
"""Of a pod, that are told; how many more there are is told, too."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods a host runs."""

    namespaces: frozenset[str]
    allow_root: bool = False


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a container runs."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    working_dir: str = ""
    """Empty: a directory of its own."""
    uid: int = NOBODY
    gid: int = NOBODY
    groups: tuple[int, ...] = ()


class Bounds(NamedTuple):
    """What a pod or a container may use; None: as much as there is."""

    memory_bytes: int | None = None
    cpu_request_millis: int = 0
    cpu_limit_millis: int | None = None


Plan: TypeAlias = Mapping[str, Program]
"""By container."""


class Faults(NamedTuple):
    """Why a pod cannot run here."""

    told: tuple[str, ...]

    @property
    def message(self) -> str:
        """All of them in a sentence, if they are not too many."""
        more = len(self.told) - MOST_FAULTS
        return "; ".join(self.told[:MOST_FAULTS]) + (f"; and {more} more" if more > 0 else "")


def plan(document: Document, rules: Rules) -> Plan | Faults:
    """What the containers of a pod run.

    :param document: the pod's object, as it is stored
    """
    faults: list[str] = []
    metadata, spec = mapping(document, "metadata"), mapping(document, "spec")
    namespace = metadata.get("namespace", "")
    if namespace not in rules.namespaces:
        listed = ", ".join(sorted(rules.namespaces))
        faults.append(f"metadata.namespace: {namespace} is none of those whose pods run here: {listed}")
    faults += _refused("spec", spec, _OF_POD)
    context = mapping(spec, "securityContext")
    faults += _refused("spec.securityContext", context, _OF_POD_CONTEXT)
    found: dict[str, Program] = {}
    for field in ("initContainers", "containers"):
        for at, container in enumerate(mappings(spec, field)):
            path = f"spec.{field}[{at}]"
            faults += _refused(path, container, _OF_CONTAINER)
            faults += _refused(f"{path}.securityContext", mapping(container, "securityContext"), _OF_CONTEXT)
            found[str(container.get("name", ""))] = _program(path, container, context, rules, faults)
    return Faults(tuple(faults)) if faults else found


def bounds(pod: Pod) -> dict[str, Bounds]:
    """Of each container, and of the pod itself under the empty name."""
    spec = pod.spec
    found = {
        one.name: _bounds(one.resources.requests, one.resources.limits)
        for one in (*spec.init_containers, *spec.containers)
    }
    own = Bounds() if spec.resources is None else _bounds(spec.resources.requests, spec.resources.limits)
    asked = sum(found[one.name].cpu_request_millis for one in spec.containers)
    return {**found, "": own._replace(cpu_request_millis=own.cpu_request_millis or asked)}


def expand(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` is what is known by that name, and itself if nothing is; `$$` is `$`."""

    def replaced(found: re.Match[str]) -> str:
        what = found[1]
        if what == "$":
            return "$"
        return known.get(what[1:-1], found[0]) if what.endswith(")") and what.startswith("(") else found[0]

    return _REFERENCE.sub(replaced, text)


_REFERENCE: Final = re.compile(r"\$(\$|\([^)]*\)|.)", re.DOTALL)


# ---- what is refused ---------------------------------------------------------------------------------------

_Check: TypeAlias = Callable[[Any], str]
"""Why a value is refused; empty: it is not."""


def _any(_value: Any) -> str:
    return ""


def _one_of(*allowed: Any) -> _Check:
    """The value that admission fills in, or what a process has anyway."""
    return lambda value: "" if value in allowed else f"a process has {allowed[0]!r}"


def _only_dropped(value: Any) -> str:
    return "a process is given no capabilities" if mapping({"": value}, "").get("add") else ""


_OF_POD: Final[dict[str, _Check]] = {
    **dict.fromkeys(
        (
            "containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds", "securityContext",
            "resources", "overhead", "nodeName", "nodeSelector", "affinity", "tolerations", "schedulerName",
            "topologySpreadConstraints", "schedulingGates", "priority", "priorityClassName", "preemptionPolicy", "os",
            "hostNetwork", "hostPID", "hostIPC",
        ),
        _any,
    ),
    "dnsPolicy": _one_of("Default", "ClusterFirst"),
    "enableServiceLinks": _one_of(True),
    "serviceAccountName": _one_of("default"),
    "serviceAccount": _one_of("default"),
}  # fmt: skip
_OF_POD_CONTEXT: Final[dict[str, _Check]] = dict.fromkeys(
    ("runAsUser", "runAsGroup", "runAsNonRoot", "supplementalGroups"), _any
)
_OF_CONTAINER: Final[dict[str, _Check]] = {
    **dict.fromkeys(
        (
            "name", "image", "imagePullPolicy", "command", "args", "env", "workingDir", "ports", "resources",
            "resizePolicy", "restartPolicy", "restartPolicyRules", "securityContext",
        ),
        _any,
    ),
    "terminationMessagePath": _one_of("/dev/termination-log"),
    "terminationMessagePolicy": _one_of("File"),
}  # fmt: skip
_OF_CONTEXT: Final[dict[str, _Check]] = {
    **dict.fromkeys(("runAsUser", "runAsGroup", "runAsNonRoot"), _any),
    "capabilities": _only_dropped,
}
"""Fields that are done, and by whom the others of a value are refused."""

_WHY: Final = {
    "volumes": "a process has no volumes of its pod",
    "volumeMounts": "a process has no volumes of its pod",
    "imagePullSecrets": "no images are pulled",
    "livenessProbe": "processes are not probed",
    "readinessProbe": "processes are not probed",
    "startupProbe": "processes are not probed",
    "envFrom": "the environment of a process has literal values only",
}


def _refused(path: str, document: Document, known: Mapping[str, _Check]) -> Iterator[str]:
    """A field that says nothing (null, empty, false) is not there."""
    for field, said in document.items():
        if said in (None, "", [], {}, False) and not (said == 0 and said is not False):
            continue
        check = known.get(field)
        why = _WHY.get(field, "is not done for processes") if check is None else check(said)
        if why:
            yield f"{path}.{field}: {why}"


# ---- what is run -------------------------------------------------------------------------------------------


def _program(path: str, container: Document, context: Document, rules: Rules, faults: list[str]) -> Program:
    env: dict[str, str] = {}
    for at, one in enumerate(mappings(container, "env")):
        if one.get("valueFrom"):
            faults.append(f"{path}.env[{at}].valueFrom: the environment of a process has literal values only")
        env[str(one.get("name", ""))] = expand(str(one.get("value", "")), env)
    command = _texts(container, "command")
    if not command:
        faults.append(f"{path}.command: is missing: without its image nobody knows what to run")
    own = {**context, **{name: one for name, one in mapping(container, "securityContext").items() if one is not None}}
    made = Program(
        argv=tuple(expand(one, env) for one in (*command, *_texts(container, "args"))),
        env=env,
        working_dir=str(container.get("workingDir", "")),
        uid=_id(own, "runAsUser"),
        gid=_id(own, "runAsGroup"),
        groups=tuple(one for one in own.get("supplementalGroups") or () if isinstance(one, int)),
    )
    root = [name for name, one in (("runAsUser", made.uid), ("runAsGroup", made.gid)) if not one]
    root += ["supplementalGroups"] if 0 in made.groups else []
    if own.get("runAsNonRoot") and not made.uid:
        faults.append(f"{path}.securityContext.runAsNonRoot: is true, and runAsUser is 0")
    elif not rules.allow_root:
        faults += [f"{path}.securityContext.{name}: 0 is root, and allow_root is off" for name in root]
    return made


def _bounds(requests: ResourceList, limits: ResourceList) -> Bounds:
    """A container that asks for no CPU and has a limit asks for as much."""
    cpu = milli(limits["cpu"]) if "cpu" in limits else None
    return Bounds(
        memory_bytes=value(limits["memory"]) if "memory" in limits else None,
        cpu_request_millis=milli(requests["cpu"]) if "cpu" in requests else cpu or 0,
        cpu_limit_millis=cpu,
    )


def _id(context: Document, name: str) -> int:
    found = context.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else NOBODY


def _texts(document: Document, field: str) -> list[str]:
    return [str(one) for one in document.get(field) or ()]
