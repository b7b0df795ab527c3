"""A directory of keys that an older release made gets the identities that it has not, and the rest stays."""

import json
import ssl
import stat
from pathlib import Path

import httpx
import pytest
from cryptography import x509

from podyard.bus import connect, embedded_server
from podyard.cli import app
from podyard.cli.errors import InputError
from podyard.cli.lab import plan
from podyard.cli.lab.lab import LabOptions, running_lab
from podyard.cli.security import completing, directory, identities, kube_files, mirrors, rotation
from podyard.cli.security.authority import hosts_of
from podyard.cli.security.servers import lets_in
from podyard.runtime.certificates import load
from podyard.runtime.settings import SecureSettings
from tests.e2e.stage import READY_S

KUBE_API = "kube_api"


def older(place: Path) -> Path:
    """As a release made it that had no Kubernetes API."""
    directory.create(place, [one for one in identities.all_identities() if one.name != KUBE_API])
    return place


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def token_in(kubeconfig: Path) -> str:
    return json.loads(kubeconfig.read_bytes())["users"][0]["user"]["token"]


async def test_servers_let_in_who_was_added_and_everybody_as_before(tmp_path: Path) -> None:
    place = older(tmp_path / "security")
    before = files(place)
    async with embedded_server(tmp_path / "nats", settings=directory.server_settings(place)) as server:
        assert completing.complete(place, lambda: rotation.authority(place)) == [KUBE_API]
        server.reload(directory.server_settings(place))
        await mirrors.bootstrap(place, (server.url,))
        for name in (KUBE_API, "api", "person", "node_agent"):
            assert await lets_in(directory.bus_settings(place, directory.named(name), (server.url,))), name
        async with connect(directory.bus_settings(place, directory.named(KUBE_API), (server.url,))) as bus:
            assert await bus.last_sequence("CLUSTER") == 0
    after = files(place)
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"identities/api/identities.json", "server/accounts.json", "server/nats.conf"}
    assert {path for path in after if path not in before} == {
        *(f"identities/{KUBE_API}/{name}" for name in ("nkey.seed", "tls.crt", "tls.key", "ca.crt")),
        *(f"identities/{KUBE_API}/{name}" for name in ("https.crt", "https.key", "tokens.csv")),
        "identities/person/kubeconfig",
    }
    assert {stat.S_IMODE((place / path).stat().st_mode) for path in after} == {0o600}
    assert completing.complete(place, lambda: rotation.authority(place)) == []
    assert files(place) == after


def test_what_was_interrupted_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = older(tmp_path / "security")

    def failing(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(rotation, "configure", failing)
        with pytest.raises(OSError, match="no space"):
            completing.complete(place, lambda: rotation.authority(place))
    assert completing.complete(place, lambda: rotation.authority(place)) == [KUBE_API]
    names = json.loads((place / "identities" / "api" / "identities.json").read_bytes())
    assert sorted(names.values()).count(KUBE_API) == 1


def test_a_key_that_is_being_replaced_is_let_in_beside_the_new_one(tmp_path: Path) -> None:
    place = older(tmp_path / "security")
    begun = rotation.begin(place, "person", rotation.authority(place))
    rotation.let_both_in(place, begun)
    completing.complete(place, lambda: rotation.authority(place))
    accounts = (place / "server" / "accounts.json").read_text()
    assert begun.old_key in accounts
    assert begun.new_key in accounts


@pytest.mark.timeout(120)
async def test_a_lab_that_runs_it_makes_its_keys_in_an_older_directory(tmp_path: Path) -> None:
    place = older(tmp_path / "security")
    options = LabOptions(services=plan.parse("api,kube_api"), data_dir=str(tmp_path / "lab"), security=str(place))
    async with running_lab(options) as lab:
        await lab.until_ready(READY_S)
        headers = {"Authorization": f"Bearer {token_in(Path(lab.kube.kubeconfig))}"}
        async with httpx.AsyncClient(base_url=lab.kube.url, headers=headers, verify=False) as client:
            namespaces = await client.post("/api/v1/namespaces", json={"metadata": {"name": "mine"}})
            assert namespaces.status_code == 201, namespaces.text


async def test_without_the_authoritys_key_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = older(tmp_path / "security")
    key = (place / "ca" / "ca.key").rename(tmp_path / "ca.key")
    command = f"podyard security complete {place} --ca-key FILE"
    options = LabOptions(services=plan.parse("api,kube_api"), data_dir=str(tmp_path / "lab"), security=str(place))
    with pytest.raises(InputError) as refused:
        async with running_lab(options):
            pass
    assert refused.value.advice == command
    assert app.run(["security", "init", str(place), "--if-missing"]) == 0
    assert command in capsys.readouterr().out
    assert app.run(["security", "complete", str(place), "--ca-key", str(key)]) == 0
    assert f"added: {KUBE_API}" in capsys.readouterr().out
    assert app.run(["security", "init", str(place), "--if-missing"]) == 0
    assert "nothing was changed" in capsys.readouterr().out


def test_what_it_is_served_by_is_of_the_authority_and_for_where_people_reach_it(tmp_path: Path) -> None:
    place = tmp_path / "security"
    directory.create(place, identities.all_identities(), kube_url="https://kube.example:7443")
    folder = place / "identities" / KUBE_API
    authority = x509.load_pem_x509_certificate((place / "ca" / "ca.crt").read_bytes())
    own = (folder / "https.crt").read_bytes()
    x509.load_pem_x509_certificate(own).verify_directly_issued_by(authority)
    assert set(hosts_of(own)) == {*kube_files.HOSTS, "kube.example"}
    kubeconfig = place / "identities" / "person" / "kubeconfig"
    document = json.loads(kubeconfig.read_bytes())
    assert document["clusters"][0]["cluster"]["server"] == "https://kube.example:7443"
    settings = SecureSettings(
        port=1,
        bind_address="127.0.0.1",
        tls_cert_file=str(folder / "https.crt"),
        tls_private_key_file=str(folder / "https.key"),
        token_auth_file=str(folder / "tokens.csv"),
    )
    material = load(settings, x509.load_pem_x509_certificate(own).not_valid_before_utc.timestamp() + 600)
    assert material.context.verify_mode is ssl.CERT_NONE
    token = token_in(kubeconfig)
    found = material.tokens.identity(token)
    assert found is not None
    assert "podyard:people" in found.groups
    before = own, kubeconfig.read_bytes()
    kube_files.renew(place, rotation.authority(place))
    renewed = json.loads(kubeconfig.read_bytes())
    assert token_in(kubeconfig) != token
    assert renewed["clusters"][0]["cluster"]["server"] == "https://kube.example:7443"
    assert set(hosts_of((folder / "https.crt").read_bytes())) == {*kube_files.HOSTS, "kube.example"}
    assert ((folder / "https.crt").read_bytes(), kubeconfig.read_bytes()) != before


def test_a_url_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["security", "init", str(tmp_path / "a"), "--kube-api", "localhost:6443"]) == 2
    assert "it is no URL of HTTPS" in capsys.readouterr().err
    assert not (tmp_path / "a" / "server" / "nats.conf").exists()
