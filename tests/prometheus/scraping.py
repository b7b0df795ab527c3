"""How Prometheus scrapes a lab: as deploy/prometheus/prometheus.yml says of the compose stack, with the lab's
addresses in place of those that DNS gives there, often, and over TLS with a token (docs/serving.md).
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from podyard.cli.lab.lab import LabOptions
from podyard.cli.lab.plan import Planned
from podyard.runtime import ports
from tests.support.certificates import Authority

REPOSITORY: Final = Path(__file__).parents[2]
CONFIG: Final = REPOSITORY / "deploy" / "prometheus" / "prometheus.yml"
RULES: Final = REPOSITORY / "deploy" / "prometheus" / "rules.yml"
EVERY: Final = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
HOST: Final = "127.0.0.1"
TOKEN: Final = "of-the-tests-prometheus"


class Scraped(NamedTuple):
    """A lab that serves over TLS, and how Prometheus gets at it."""

    options: LabOptions
    config: dict[str, Any]


def over_tls(options: LabOptions, folder: Path) -> Scraped:
    """Each service of the lab gets a port, with a certificate of an authority that Prometheus trusts, and
    believes its token.

    :param folder: for certificates and tokens
    """
    authority = Authority(folder)
    pair = authority.issue("server", hosts=[HOST])
    tokens, token = folder / "tokens.csv", folder / "token"
    tokens.write_text(f"{TOKEN},prometheus,1,system:monitoring\n", encoding="utf-8")
    token.write_text(TOKEN, encoding="utf-8")
    tokens.chmod(0o600)
    places = dict(zip(options.services, ports.free_ports(len(options.services)), strict=True))
    shared = {
        "PODYARD_SECURE_BIND_ADDRESS": HOST,
        "PODYARD_SECURE_TLS_CERT_FILE": str(pair.certificate),
        "PODYARD_SECURE_TLS_PRIVATE_KEY_FILE": str(pair.key),
        "PODYARD_SECURE_TOKEN_AUTH_FILE": str(tokens),
    }
    served = msgspec.structs.replace(
        options,
        environment={**options.environment, **shared},
        secure_ports={planned.instance: port for planned, port in places.items()},
    )
    return Scraped(served, _config(places, authority.file, token))


def _config(places: dict[Planned, int], authority: Path, token: Path) -> dict[str, Any]:
    found = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    found["global"], found["rule_files"] = dict(EVERY), [str(RULES)]
    for job in found["scrape_configs"]:
        [discovery] = job.pop("dns_sd_configs")
        job.pop("relabel_configs")
        job["static_configs"] = [_targets(places, name) for name in discovery["names"]]
        job["scheme"] = "https"
        job["tls_config"] = {"ca_file": str(authority)}
        job["authorization"] = {"credentials_file": str(token)}
    return found


def _targets(places: dict[Planned, int], name: str) -> dict[str, Any]:
    """Of a service as it is called in docker-compose.yml."""
    service = name.replace("-", "_")
    addresses = [f"{HOST}:{port}" for planned, port in places.items() if planned.service == service]
    assert addresses, f"{CONFIG.name} names {name}, and the lab has no {service}"
    return {"targets": addresses, "labels": {"service": name}}
