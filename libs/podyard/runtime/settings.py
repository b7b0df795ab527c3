"""What can be set of a service, in which order the sources count, and how a wrong setting is reported.

Sources, later ones win: the defaults below, the options file (YAML), `PODYARD_*` environment variables,
flags. The options file has the topics of `ServiceSettings` at the top level and one section a service:

    nats: {servers: [nats://10.0.0.5:4222]}
    log: {level: debug}
    scheduler_config: /etc/podyard/scheduler.yaml
    queue: {pod_initial_backoff_s: 2}

A variable's name is the path in capitals, `PODYARD_NATS_SERVERS` (a list by commas),
`PODYARD_QUEUE_POD_INITIAL_BACKOFF_S`.
"""

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from podyard.proto import streams
from podyard.runtime import layers

S = TypeVar("S", bound=msgspec.Struct)

SERVICES: Final = ("api", "kube_api", "queue", "scheduler", "binder", "node_agent", "descheduler", "workloads")
"""Sections of the options file that belong to services; one file serves them all."""

PREFIX: Final = "PODYARD"


class NatsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to reach NATS. Paths of secrets, never secrets: `/configz` shows all of this."""

    servers: Annotated[tuple[str, ...], Meta(min_length=1)] = ("nats://127.0.0.1:4222",)
    """URLs of the servers, `nats://` or `tls://`; of a cluster several, so that no one of them is needed to
    start."""
    credentials_file: str = ""
    """User credentials (JWT and seed), as `nsc` writes them."""
    nkey_seed_file: str = ""
    """The seed of an nkey, where identities are nkeys (docs/trust.md)."""
    tls_ca_file: str = ""
    """Authorities (PEM) whose certificates of servers are believed; empty: those of the system."""
    tls_cert_file: str = ""
    """The own certificate (PEM), where servers ask for one."""
    tls_key_file: str = ""
    """Its key."""
    inbox_prefix: str = ""
    """Start of the subjects on which answers arrive, where permissions tell identities apart; empty:
    `_INBOX.<service>`."""
    jetstream_prefix: str = "$JS.API"
    """Where JetStream's requests go: another one in an account that reads another's streams."""
    request_timeout_s: Annotated[float, Meta(gt=0)] = 5.0
    """Seconds a request waits for its answer: above a usual answer by far, below what a person waits for."""
    stream_replicas: Annotated[int, Meta(ge=1, le=5)] = 1
    """Copies of each stream: 1 on one server, 3 in a cluster."""
    ensure_streams: bool = True
    """Create or update streams at the start; off where a bootstrap administrator does (docs/trust.md)."""


class RetentionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long what is over is kept (seconds), and how much of it (MiB). All services of a cluster must be
    given the same.

    Less of it makes streams and memory smaller, and leaves less to explain. What comes first ends it: the age
    or the size.
    """

    markers_s: Annotated[int, Meta(ge=20)] = streams.MARKER_TTL_S
    """Deletion markers, commit records and tombstones: a reader that was without contact for half of it lists
    again."""
    decisions_s: Annotated[int, Meta(ge=20)] = streams.DECISIONS.max_age_s
    """Attempts that did not bind."""
    decisions_mib: Annotated[int, Meta(ge=1)] = streams.DECISIONS.max_bytes // streams.MEBIBYTE
    """Most of attempts that is kept, MiB; then the oldest go."""
    requeues_s: Annotated[int, Meta(ge=20)] = streams.REQUEUES.max_age_s
    """What an event moved and did not move."""
    requeues_mib: Annotated[int, Meta(ge=1)] = streams.REQUEUES.max_bytes // streams.MEBIBYTE
    """Most of what events moved that is kept, MiB; then the oldest go."""
    events_s: Annotated[int, Meta(ge=20)] = streams.K8SEVENTS.max_age_s
    """Events for people."""
    events_mib: Annotated[int, Meta(ge=1)] = streams.K8SEVENTS.max_bytes // streams.MEBIBYTE
    """Most of events that is kept, MiB; then the oldest go."""
    dead_s: Annotated[int, Meta(ge=20)] = streams.DEAD.max_age_s
    """Messages that could not be used."""
    dead_mib: Annotated[int, Meta(ge=1)] = streams.DEAD.max_bytes // streams.MEBIBYTE
    """Most of such messages that is kept, MiB; then the oldest go."""
    duplicates_s: Annotated[int, Meta(ge=1)] = streams.CLUSTER.duplicates_s
    """Message ids by which the server drops repetitions; it keeps each in memory. Longer than a writer asks
    again: 30 s at most."""

    @property
    def specs(self) -> tuple[streams.StreamSpec, ...]:
        """All streams, kept so."""
        kept = {
            streams.DECISIONS.name: (self.decisions_s, self.decisions_mib),
            streams.REQUEUES.name: (self.requeues_s, self.requeues_mib),
            streams.K8SEVENTS.name: (self.events_s, self.events_mib),
            streams.DEAD.name: (self.dead_s, self.dead_mib),
        }
        return tuple(
            streams.kept_for(spec, *kept.get(spec.name, (None, None)), duplicates_s=self.duplicates_s)
            for spec in streams.ALL_STREAMS
        )


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Plain HTTP: health, `/metrics` and `/configz` for whoever reaches the port (docs/serving.md)."""

    host: str = "127.0.0.1"
    """An address of the loopback, unless `insecure`."""
    port: Annotated[int, Meta(ge=-1, le=65535)] = 0
    """0 = any free port (it is logged), -1 = no plain HTTP."""
    insecure: bool = False
    """Serve it beyond the loopback: everybody in the network reads metrics and settings, and nobody says who
    he is."""


UrlPath: TypeAlias = Annotated[str, Meta(pattern=r"^(\*|/[^*]*\*?)$")]
"""What may be read, as in RBAC's nonResourceURLs: `/metrics`, `/debug/*`, `*`."""


class HttpsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A port of HTTPS: where it is, what it shows of itself, and by what those are known who ask."""

    section: ClassVar[str]
    """Of the options file, for what is said of a wrong setting."""

    port: Annotated[int, Meta(ge=0, le=65535)]
    bind_address: str
    tls_cert_file: str = ""
    """The server's certificate (PEM), those of its authorities after it; empty: one is made, signed by
    itself, at each start. This file and the next three are read again when they change."""
    tls_private_key_file: str = ""
    """The key of that certificate (PEM)."""
    client_ca_file: str = ""
    """Authorities (PEM) whose client certificates are believed: CN is the user, O a group."""
    token_auth_file: str = ""
    """Bearer tokens, a line `token,user,uid,"group1,group2"` each; only its owner and group may read it."""
    host_names: tuple[str, ...] = ()
    """Names and addresses by which others reach this host, besides those that it knows of itself: one of all
    must stand in the certificate."""

    @property
    def key_paths(self) -> tuple[str, ...]:
        """The files by which the port goes; those that are set."""
        named = self.tls_cert_file, self.tls_private_key_file, self.client_ca_file, self.token_auth_file
        return tuple(filter(None, named))


class SecureSettings(HttpsSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """HTTPS: health for everybody, the rest for who says who he is and may read it (docs/serving.md)."""

    section: ClassVar[str] = "secure"

    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """0 = no HTTPS, as in kube-scheduler. There is no default: services of one host cannot share a port
    (kube-scheduler's is 10259, the descheduler's 10258, the kubelet's 10250)."""
    bind_address: str = "0.0.0.0"
    """`0.0.0.0` and `::` are all addresses of the host."""
    groups: dict[str, tuple[UrlPath, ...]] = msgspec.field(
        default_factory=lambda: {"system:masters": ("*",), "system:monitoring": ("/metrics",)}
    )
    """What the members of a group may read, as Kubernetes' roles `cluster-admin` and `system:monitoring` have
    it."""
    users: dict[str, tuple[UrlPath, ...]] = {}
    """What single users may read, besides."""


class LogSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Logs go to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is told."""
    format: Literal["auto", "console", "json"] = "auto"
    """auto: console on a terminal, JSON otherwise."""


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that every service has."""

    nats: NatsSettings = NatsSettings()
    retention: RetentionSettings = RetentionSettings()
    http: HttpSettings = HttpSettings()
    secure: SecureSettings = SecureSettings()
    log: LogSettings = LogSettings()
    instance: str = ""
    """Name of this instance among those of its service; empty: made up, `<service>-<host>-<random>`. Two
    processes must not share one, since an instance may take its own lease over."""
    scheduler_config: str = ""
    """File with a KubeSchedulerConfiguration: profiles, plugins and their arguments, backoff; empty: the
    default one. Queue, scheduler, binder and descheduler must be given the same."""
    data_dir: str = ""
    """Directory for what a service may keep across restarts; empty: it keeps nothing."""
    core_dumps: bool = False
    """Whether the process may leave a core dump, and be looked into by its own user: py-spy, gdb, its memory
    in /proc. Off: its memory holds keys (docs/trust.md)."""
    shutdown_timeout_s: Annotated[float, Meta(gt=0, le=300)] = 10.0
    """Seconds from SIGTERM to the end of the process, whatever hangs. Kubernetes grants 30 by default."""
    stall_limit_s: Annotated[float, Meta(gt=0)] = 10.0
    """`/healthz` fails when the event loop has not run for so many seconds."""


class SettingsError(ValueError):
    """One or more wrong settings; `problems` says for each which source set it, what is wrong and what would
    be right."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def load_settings(
    settings_type: type[S],
    service: str,
    *,
    config_file: str | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    named: bool = True,
) -> tuple[ServiceSettings, S]:
    """Settings of one service, its common ones and its own.

    :param config_file: options file; `None` means none
    :param environment: usually `os.environ`; `None` means empty
    :param flags: values by dotted path (`nats.servers`, `queue.backoff_s`); texts are read as in the
        environment; a `layers.Leaf` says by which flag of a command line it came
    :param named: make a name up for an instance that has none
    :raises SettingsError: with every fault at once
    """
    schema = layers.Schema(ServiceSettings, {service: settings_type}, foreign=frozenset(SERVICES) - {service})
    tree = layers.Tree(schema)
    if config_file is not None:
        tree.add_file(Path(config_file))
    tree.add_environment(environment or {}, PREFIX)
    tree.add_flags(flags or {})
    common = tree.build(ServiceSettings, ())
    own = tree.build(settings_type, (service,))
    if tree.problems or common is None or own is None:
        raise SettingsError(tuple(tree.problems))
    if named and not common.instance:
        common = msgspec.structs.replace(common, instance=instance_name(service))
    return common, own


def instance_name(service: str) -> str:
    """A name that no other instance has."""
    host = socket.gethostname().split(".", maxsplit=1)[0]
    return f"{service}-{host}-{secrets.token_hex(3)}"
