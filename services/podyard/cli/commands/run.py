"""`podyard run NAME`: one service in this process."""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from podyard.cli import reference_flags, services
from podyard.cli.errors import InputError
from podyard.cli.serving import run_service

NODE_AGENT: Final = "node_agent"

SETTINGS: Final[Mapping[str, str]] = {
    "instance": "instance",
    "nats": "nats.servers",
    "scheduler-config": "scheduler_config",
    "http-port": "http.port",
    "secure-port": "secure.port",
    "bind-address": "secure.bind_address",
    "tls-cert-file": "secure.tls_cert_file",
    "tls-private-key-file": "secure.tls_private_key_file",
    "client-ca-file": "secure.client_ca_file",
    "token-auth-file": "secure.token_auth_file",
    "log-level": "log.level",
    "log-format": "log.format",
    "take-over": "node_agent.take_over",
    "host-node": "node_agent.host_node",
    "node-cgroup": "node_agent.node_cgroup",
    "runtime": "node_agent.runtime",
    "process-namespaces": "node_agent.process_namespaces",
    "allow-root": "node_agent.allow_root",
    "kubelet-config": "node_agent.kubelet_config",
}
"""Settings by the flags that set them."""


def run(
    name: str,
    /,
    *flags: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    config: Annotated[str | None, Parameter(name=["--config", "-c"])] = None,
    instance: str | None = None,
    nats: Annotated[str | None, Parameter(env_var="PODYARD_NATS_SERVERS")] = None,
    scheduler_config: str | None = None,
    http: Annotated[int | None, Parameter(name="--http-port")] = None,
    secure_port: int | None = None,
    bind_address: str | None = None,
    tls_cert_file: str | None = None,
    tls_private_key_file: str | None = None,
    client_ca_file: str | None = None,
    token_auth_file: str | None = None,
    log_level: str | None = None,
    log_format: str | None = None,
    take_over: Annotated[bool, Parameter(negative="")] = False,
    host_node: str | None = None,
    node_cgroup: str | None = None,
    runtime: Literal["none", "process"] | None = None,
    process_namespaces: str | None = None,
    allow_root: Annotated[bool, Parameter(negative="")] = False,
    kubelet_config: str | None = None,
    write_config_to: str | None = None,
    version: Annotated[bool, Parameter(negative="")] = False,
    set_: Annotated[tuple[str, ...], Parameter(name=["--set", "-s"], negative="")] = (),
) -> int:
    """Run one service until Ctrl-C or SIGTERM.

    Settings come from defaults, the options file, `PODYARD_*` variables and flags, later ones win. NATS may
    be missing: the service waits for it and says so on `/readyz` and in its log (standard error).

    ```
    podyard run queue --nats nats://127.0.0.1:4222
    podyard run scheduler --instance scheduler-2 --http-port 9102
    podyard run queue --config options.yaml --set log.level=debug
    PODYARD_HTTP_PORT=9100 podyard run api
    podyard run descheduler --policy-config-file policy.yaml --dry-run
    podyard run queue --scheduler-config old.yaml --write-config-to new.yaml
    ```

    Flags of kube-scheduler and the descheduler are taken where they mean the same, with - or _:
    --leader-elect, --leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period,
    --pod-max-in-unschedulable-pods-duration, --logging-format, --v, --policy-config-file,
    --descheduling-interval, --dry-run; docs/flags.md says what each means here, and why others are refused.

    :param name: api, kube_api, queue, scheduler, binder, node_agent, descheduler or workloads.
    :param config: Options file (YAML): common topics at the top, one section a service.
    :param instance: Name of this instance; give each its own. A restarted instance takes its lease over at
        once.
    :param nats: NATS server, several with commas.
    :param scheduler_config: KubeSchedulerConfiguration (YAML or JSON) for queue, scheduler, binder and
        descheduler.
    :param http: Port of plain HTTP on the loopback: /livez, /readyz, /metrics, /configz; 0 any free one, -1
        none.
    :param secure_port: Port of HTTPS, where whoever says who he is reads what he may; 0 none (the default).
    :param bind_address: IP address of that port; default: all of this machine.
    :param tls_cert_file: Its certificate (PEM), read again when it changes; default: one signed by itself.
    :param tls_private_key_file: The certificate's key.
    :param client_ca_file: Authorities whose client certificates are believed.
    :param token_auth_file: Bearer tokens, a line token,user,uid,"group1,group2" each.
    :param log_level: debug, info, warning or error.
    :param log_format: console, json, or auto (console on a terminal).
    :param take_over: node_agent only: play nodes at once that another agent plays, without waiting until it
        is silent.
    :param host_node: node_agent only: this machine is the node of that name; it is registered, read and
        evicts for real.
    :param node_cgroup: node_agent only: the cgroup whose memory limit is the capacity of that node, for
        example /podyard; default: the whole machine.
    :param runtime: node_agent only: process runs the pods of that node as processes of this machine.
    :param process_namespaces: node_agent only: whose pods run as processes, several with commas.
    :param allow_root: node_agent only: processes of pods may run as root.
    :param kubelet_config: node_agent only: KubeletConfiguration (YAML or JSON) of its nodes.
    :param write_config_to: Write the configuration in force to this file, and end: of queue, scheduler and
        binder the KubeSchedulerConfiguration, of the descheduler its policy, of node_agent its
        KubeletConfiguration, of others the options file.
    :param version: Print Podyard's version, and end.
    :param set_: One setting by its path, `--set log.level=debug`; may be repeated.
    """
    of_agent = {
        "take_over": take_over or None,
        "host_node": host_node,
        "node_cgroup": node_cgroup,
        "runtime": runtime,
        "process_namespaces": process_namespaces,
        "allow_root": allow_root or None,
        "kubelet_config": kubelet_config,
    }
    if version:
        from podyard.cli.commands.version import version as print_version

        return print_version()
    name = services.check(name)
    for one, value in of_agent.items():
        if value is not None and name != NODE_AGENT:
            flag = f"--{one.replace('_', '-')}"
            raise InputError(f"{flag} is not for {name}", f"only podyard run {NODE_AGENT} plays nodes")
    theirs = reference_flags.settings(name, reference_flags.parsed(flags, _own_flags()))
    given: dict[str, Any] = {
        "instance": instance,
        "nats": nats,
        "scheduler-config": scheduler_config,
        "http-port": http,
        "secure-port": secure_port,
        "bind-address": bind_address,
        "tls-cert-file": tls_cert_file,
        "tls-private-key-file": tls_private_key_file,
        "client-ca-file": client_ca_file,
        "token-auth-file": token_auth_file,
        "log-level": log_level,
        "log-format": log_format,
        **{flag.replace("_", "-"): value for flag, value in of_agent.items()},
    }
    ours = {SETTINGS[flag]: value for flag, value in given.items()} | _assignments(set_)
    ours = {path: value for path, value in ours.items() if value is not None}
    for path in theirs.keys() & ours.keys():
        raise InputError(
            f"{theirs[path].source} sets {path}, which is set by another flag, too", "leave one of them out"
        )
    return run_service(name, config, {**ours, **theirs}, write_config_to)


def _own_flags() -> list[str]:
    return [name.rstrip("_").replace("_", "-") for name in inspect.signature(run).parameters]


def _assignments(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise InputError(f"--set {text}: expected PATH=VALUE", "for example --set log.level=debug")
        found[path] = value
    return found
