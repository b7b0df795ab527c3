"""The flags of kube-scheduler and of the descheduler on `podyard run SERVICE`: what each means here.

A flag is taken where it means the same, and then sets one of our settings. One that asks for what is so
anyhow is taken, too. All others are refused with the reason: none is taken and ignored. `-` and `_` are one,
as there. `docs/flags.md` is made of this table.

Sources: kube-scheduler v1.36.2, cmd/kube-scheduler/app/options/options.go; descheduler v0.36.0,
cmd/descheduler/app/options/options.go; pflag, whose switches take a value after `=` only.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.cli.errors import InputError
from podyard.objects import go_syntax
from podyard.runtime.layers import Leaf

LED: Final = frozenset({"queue", "binder", "node_agent", "descheduler", "workloads"})
"""Services with a lease."""
ALL: Final = frozenset({"api", "scheduler", *LED})
QUEUE: Final = frozenset({"queue"})
DESCHEDULER: Final = frozenset({"descheduler"})
PAGE: Final = "docs/flags.md lists the flags"

DEBUG_FROM: Final = 4
"""klog's verbosity from which on Podyard logs what debugging needs. Source: Kubernetes' logging conventions
(contributors/devel/sig-instrumentation/logging.md)."""
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")


class Taken(NamedTuple):
    """It sets a setting."""

    setting: str
    """Dotted path; `SERVICE` stands for the service that runs."""
    read: Callable[[str], Any]
    """The setting's value; raises ValueError with a sentence."""
    meaning: str
    """What it sets, for people."""
    services: frozenset[str] = ALL
    switch: bool = False
    """It needs no value."""


class Holds(NamedTuple):
    """A switch for what is so anyhow: taken if it asks for that, else refused."""

    reason: str
    """Why it cannot be otherwise."""
    on: frozenset[str] = frozenset()
    """Services of which it is on; of all others it is off."""


class Refused(NamedTuple):
    """It means nothing here, or what cannot be done."""

    reason: str


class Ours(NamedTuple):
    """`podyard run` has it itself."""

    setting: str
    meaning: str


Flag: TypeAlias = Taken | Holds | Refused | Ours


def _text(text: str) -> str:
    if not text:
        raise ValueError("it is empty")
    return text


def _boolean(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError("write true or false")
    return text in _TRUE


def _duration(text: str) -> float:
    seconds = go_syntax.parse_duration(text)
    if seconds < 0:
        raise ValueError("it must not be negative")
    return seconds


def _whole_seconds(text: str) -> int:
    seconds = _duration(text)
    if not seconds.is_integer():
        raise ValueError("NATS keeps leases for whole seconds")
    return int(seconds)


def _verbosity(text: str) -> str:
    if not text.isdecimal():
        raise ValueError("write a whole number, 0 or more")
    return "debug" if int(text) >= DEBUG_FROM else "info"


def _log_format(text: str) -> str:
    if text not in ("text", "json"):
        raise ValueError("write text or json")
    return "console" if text == "text" else "json"


_NO_API_SERVER: Final = "there is no Kubernetes API server to connect to; NATS is given by --nats"
_AUTHENTICATION: Final = "there is no Kubernetes API server to ask who a client is; see docs/serving.md"
_AUTHORIZATION: Final = "who may read which path stands in secure.groups and secure.users (docs/serving.md)"
_LEASE_OBJECT: Final = "the lease is no object but a message on NATS, leases.SERVICE in the stream LEASES"
_RULES: Final = "the rules are those of v1.36.2 with its default gates"
_METRICS: Final = "every metric is always served, with all its labels"
_LOGS: Final = "log lines are written to standard error as they come, all of one level"
_TRACES: Final = "traces are set by OpenTelemetry's own variables, OTEL_EXPORTER_OTLP_ENDPOINT and its like"

_HTTP: Final = "HTTP is served as uvicorn serves it, with neither HTTP/2 nor shared ports"
_TLS: Final = "TLS 1.2 and later, with the ciphers that Python's ssl module takes for secure"

KUBE_SCHEDULER: Final[Mapping[str, Flag]] = {
    "bind-address": Ours("secure.bind_address", "address of the HTTPS port"),
    "secure-port": Ours("secure.port", "port of HTTPS; none unless it is given, as services of a host share none"),
    "tls-cert-file": Ours("secure.tls_cert_file", "certificate of the HTTPS port; one is made if there is none"),
    "tls-private-key-file": Ours("secure.tls_private_key_file", "its key"),
    "client-ca-file": Ours("secure.client_ca_file", "authorities whose client certificates are believed"),
    "cert-dir": Refused("a certificate that is made for want of one is made anew at each start, and kept nowhere"),
    "disable-http2-serving": Holds(_HTTP, ALL),
    "http2-max-streams-per-connection": Refused(_HTTP),
    "permit-address-sharing": Holds(_HTTP),
    "permit-port-sharing": Holds(_HTTP),
    "tls-cipher-suites": Refused(_TLS),
    "tls-curve-preferences": Refused(_TLS),
    "tls-min-version": Refused(_TLS),
    "tls-sni-cert-key": Refused("the HTTPS port has one certificate"),
    "master": Refused(_NO_API_SERVER),
    "kubeconfig": Refused(_NO_API_SERVER),
    "kube-api-burst": Refused(_NO_API_SERVER),
    "kube-api-content-type": Refused(_NO_API_SERVER),
    "kube-api-qps": Refused(_NO_API_SERVER),
    "authentication-kubeconfig": Refused(_AUTHENTICATION),
    "authentication-skip-lookup": Refused(_AUTHENTICATION),
    "authentication-token-webhook-cache-ttl": Refused(_AUTHENTICATION),
    "authentication-tolerate-lookup-failure": Refused(_AUTHENTICATION),
    "authorization-always-allow-paths": Refused(_AUTHORIZATION),
    "authorization-kubeconfig": Refused(_AUTHORIZATION),
    "authorization-webhook-cache-authorized-ttl": Refused(_AUTHORIZATION),
    "authorization-webhook-cache-unauthorized-ttl": Refused(_AUTHORIZATION),
    "requestheader-allowed-names": Refused(_AUTHENTICATION),
    "requestheader-client-ca-file": Refused(_AUTHENTICATION),
    "requestheader-extra-headers-prefix": Refused(_AUTHENTICATION),
    "requestheader-group-headers": Refused(_AUTHENTICATION),
    "requestheader-uid-headers": Refused(_AUTHENTICATION),
    "requestheader-username-headers": Refused(_AUTHENTICATION),
    "contention-profiling": Holds("there is no profiling endpoint"),
    "profiling": Holds("there is no profiling endpoint"),
    "pod-max-in-unschedulable-pods-duration": Taken(
        "queue.max_unschedulable_s", _duration, "after how long a parked pod is tried again anyhow", QUEUE
    ),
    "leader-elect": Holds(
        "whoever leads does so by a lease; api and scheduler have no leader, any number of them work at once", LED
    ),
    "leader-elect-lease-duration": Taken(
        "SERVICE.lease_ttl_s", _whole_seconds, "how long the lease lives without renewal; whole seconds", LED
    ),
    "leader-elect-renew-deadline": Taken(
        "SERVICE.lease_renew_deadline_s", _duration, "after how long without a good renewal a leader steps down", LED
    ),
    "leader-elect-retry-period": Taken(
        "SERVICE.lease_retry_period_s", _duration, "pause between renewals, the longest between a standby's looks", LED
    ),
    "leader-elect-resource-lock": Refused(_LEASE_OBJECT),
    "leader-elect-resource-name": Refused(_LEASE_OBJECT),
    "leader-elect-resource-namespace": Refused(_LEASE_OBJECT),
    "emulated-version": Refused(_RULES),
    "feature-gates": Refused(_RULES),
    "min-compatibility-version": Refused(_RULES),
    "allow-metric-labels": Refused(_METRICS),
    "allow-metric-labels-manifest": Refused(_METRICS),
    "disabled-metrics": Refused(_METRICS),
    "show-hidden-metrics-for-version": Refused(_METRICS),
    "log-flush-frequency": Refused(_LOGS),
    "log-text-info-buffer-size": Refused(_LOGS),
    "log-text-split-stream": Holds("log lines go to standard error, all of them"),
    "logging-format": Taken("log.format", _log_format, "text: as for a terminal; json: a JSON object a line"),
    "v": Taken("log.level", _verbosity, f"0 to {DEBUG_FROM - 1}: info; from {DEBUG_FROM} on: debug"),
    "vmodule": Refused(_LOGS),
}
"""Flags of kube-scheduler but those that are told of above the tables of the page."""

DESCHEDULER_FLAGS: Final[Mapping[str, Flag]] = {
    "policy-config-file": Taken("descheduler.policy", _text, "the DeschedulerPolicy", DESCHEDULER),
    "descheduling-interval": Taken(
        "descheduler.interval_s", _duration, "from one cycle's start to the next one's; 0: one cycle", DESCHEDULER
    ),
    "dry-run": Taken("descheduler.dry_run", _boolean, "judge and count, evict nobody", DESCHEDULER, switch=True),
    "client-connection-kubeconfig": Refused(_NO_API_SERVER),
    "client-connection-qps": Refused(_NO_API_SERVER),
    "client-connection-burst": Refused(_NO_API_SERVER),
    "enable-http2": Holds(_HTTP),
    "disable-metrics": Holds("metrics are served with health; --http-port -1 serves neither"),
    "otel-collector-endpoint": Refused(_TRACES),
    "otel-transport-ca-cert": Refused(_TRACES),
    "otel-service-name": Refused(_TRACES),
    "otel-trace-namespace": Refused(_TRACES),
    "otel-sample-rate": Refused(_TRACES),
    "otel-fallback-no-op-on-error": Holds("traces that cannot be sent never stop a service", ALL),
}
"""Flags that only the descheduler has."""

FLAGS: Final[Mapping[str, Flag]] = {**KUBE_SCHEDULER, **DESCHEDULER_FLAGS}


def parsed(words: Sequence[str], others: Iterable[str] = ()) -> list[tuple[str, str | None]]:
    """Flags with their values, in their order, as pflag reads them.

    :param others: names of further flags, for who mistypes one
    :raises InputError: for a word that is no flag of the reference, or a flag without its value
    """
    found: list[tuple[str, str | None]] = []
    rest = iter(words)
    for word in rest:
        name, value = _split(word, others)
        if value is None and not is_switch(name):
            value = next(rest, None)
            if value is None:
                raise InputError(f"--{name} needs a value", PAGE)
        found.append((name, value))
    return found


def _split(word: str, others: Iterable[str]) -> tuple[str, str | None]:
    if word.startswith("-v") and not word.startswith("-vm"):  # its short form: -v 4, -v=4, -v4
        text = word[2:].removeprefix("=")
        return "v", text or None
    if not word.startswith("--"):
        told = f"podyard run takes one service: what is {word}?"
        raise InputError(told, "a flag is written --name value or --name=value, a switch --name=true")
    name, equals, value = word[2:].partition("=")
    name = name.replace("_", "-")
    if name not in FLAGS or isinstance(FLAGS[name], Ours):
        known = [*others, *(one for one, flag in FLAGS.items() if not isinstance(flag, Ours))]
        close = difflib.get_close_matches(name, known, n=1)
        raise InputError(f"no flag is called --{name}", f"did you mean --{close[0]}?" if close else PAGE)
    return name, value if equals else None


def settings(service: str, given: Sequence[tuple[str, str | None]]) -> dict[str, Leaf]:
    """Settings by dotted path, each with the flag that sets it.

    :param service: that runs
    :param given: names of flags, with their values; None: none is given
    :raises InputError: for the first that cannot be taken
    """
    found: dict[str, Leaf] = {}
    for name, value in given:
        flag = FLAGS[name]
        if isinstance(flag, Ours):
            raise AssertionError(f"--{name} is read by podyard run itself")
        if isinstance(flag, Refused):
            raise InputError(f"--{name} cannot be taken: {flag.reason}", PAGE)
        if isinstance(flag, Holds):
            _check(name, value, flag, service)
            continue
        if service not in flag.services:
            raise InputError(f"--{name} is not for {service}", f"it is for {', '.join(sorted(flag.services))}; {PAGE}")
        path = flag.setting.replace("SERVICE", service)
        source = f"--{name}"
        if path in found and found[path].source != source:
            raise InputError(f"{source} and {found[path].source} set the same: {path}", "leave one of them out")
        found[path] = Leaf(_read(name, value, flag.read, switch=flag.switch), source)
    return found


def normalized(words: Sequence[str]) -> list[str]:
    """The words of a command line, `-` for `_` in the names of its flags. Source: component-base v0.36.2,
    cli/flag/flags.go (WordSepNormalizeFunc)."""
    return [_normalized(word) if word.startswith("--") else word for word in words]


def _normalized(word: str) -> str:
    name, equals, value = word.partition("=")
    return f"{name.replace('_', '-')}{equals}{value}"


def is_switch(name: str) -> bool:
    """Whether a flag needs no value."""
    flag = FLAGS[name]
    return isinstance(flag, Holds) or (isinstance(flag, Taken) and flag.switch) or name in _SWITCHES


_SWITCHES: Final = frozenset({"authentication-skip-lookup", "authentication-tolerate-lookup-failure"})
"""Refused ones."""


def _read(name: str, value: str | None, read: Callable[[str], Any], *, switch: bool) -> Any:
    text = "true" if value is None and switch else value or ""
    try:
        return read(text)
    except ValueError as error:
        raise InputError(f"--{name}={text}: {error}", PAGE) from error


def _check(name: str, value: str | None, flag: Holds, service: str) -> None:
    asked = _read(name, value, _boolean, switch=True)
    so = service in flag.on
    if asked != so:
        raise InputError(f"--{name}={str(asked).lower()} is not so of {service}: {flag.reason}", PAGE)
