"""Containers of a pod, what they ask for, and what their agent reports. Source: api/core/v1/types.go."""

import msgspec

from podyard.objects.meta import ResourceList, View
from podyard.proto.message import Int64


class ResourceClaimUse(View, frozen=True, kw_only=True):
    """A claim of the pod that a container uses."""

    name: str
    request: str = ""


class ResourceRequirements(View, frozen=True, kw_only=True):
    """What a container, or a whole pod, asks for and may take at most."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimUse, ...] = ()


class ContainerPort(View, frozen=True, kw_only=True):
    """A port; `host_port` 0 means none is taken on the node."""

    container_port: Int64 = 0
    host_port: Int64 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    name: str = ""
    protocol: str = ""


class ExitCodeRule(View, frozen=True, kw_only=True):
    """On which exit codes a restart rule acts."""

    operator: str = ""
    values: tuple[Int64, ...] = ()


class ContainerRestartRule(View, frozen=True, kw_only=True):
    """A restart rule of one container (feature ContainerRestartRules)."""

    action: str = ""
    exit_codes: ExitCodeRule | None = None


_NO_RESOURCES = ResourceRequirements()


class Container(View, frozen=True, kw_only=True):
    """A container, or an init container; an init container with `restart_policy` Always is a sidecar."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = _NO_RESOURCES
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    image_pull_policy: str = ""


class ContainerStateRunning(View, frozen=True, kw_only=True):
    """It runs since `started_at`."""

    started_at: str | None = None


class ContainerStateWaiting(View, frozen=True, kw_only=True):
    """It does not run yet, or waits to run again."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(View, frozen=True, kw_only=True):
    """It has ended."""

    exit_code: Int64 = 0
    signal: Int64 = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(View, frozen=True, kw_only=True):
    """One of the three; none of them means waiting."""

    running: ContainerStateRunning | None = None
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


_NO_STATE = ContainerState()


class ContainerStatus(View, frozen=True, kw_only=True):
    """What the agent reports of one container; `resources` and `allocated_resources` tell how far a resize in
    place is."""

    name: str
    image: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: Int64 = 0
    state: ContainerState = _NO_STATE
    last_state: ContainerState = msgspec.field(default=_NO_STATE, name="lastState")
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None
