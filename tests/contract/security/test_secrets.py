"""No secret where somebody may look: logs, spans, what services serve, lists of processes, what commands say.
All that is secret in a lab is known here, so it is looked for as it is."""

import base64
from pathlib import Path

import httpx
import psutil
import pytest

from podyard.bus import connect
from podyard.cli import objects_client
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import gather
from podyard.cli.lab import plan
from podyard.cli.lab.lab import Lab, LabOptions, running_lab
from podyard.proto.message import ObjectRef
from podyard.runtime import ports
from tests.e2e.stage import READY_S, WITHIN_S, cli
from tests.support.objects import node, pod, written
from tests.support.otlp_sink import OtlpSink

PASSWORD = "hush-hush-password"
TOKEN = "hush-hush-token"
"""These two are given by a person, in variables of the environment: there they stand, and nowhere else."""
PLANTED = "hush-hush-value-of-a-secret"
ENCODED = base64.b64encode(PLANTED.encode()).decode()
"""A value of a Secret: the api alone can read it, and shows it to people."""
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": PLANTED}}
SIGNS = (PLANTED.encode(), ENCODED[:-4].encode())
"""How it may be seen: as it is, or in base64, of which the last letters depend on what follows."""
PAGES = ("/configz", "/metrics", "/readyz?verbose", "/healthz?verbose")


def secrets_of(security: Path) -> set[str]:
    """Seeds and the lines of private keys, as they may turn up in any text."""
    found = set[str]()
    for path in security.rglob("*"):
        if path.suffix in (".seed", ".key"):
            found |= {line for line in path.read_text().splitlines() if line and not line.startswith("-----")}
    return found


def served(lab: Lab) -> dict[str, str]:
    """What every service serves, ready or not."""
    texts = dict[str, str]()
    for child in lab.children:
        for page in PAGES:
            texts[f"{child.instance} {page}"] = httpx.get(f"http://{child.http}{page}", timeout=10).text
    return texts


def processes() -> list[psutil.Process]:
    """Of the lab: this test has started them. One that was killed has no words any more, until it is
    reaped."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if one.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.timeout(240)
async def test_no_secret_is_to_be_seen(tmp_path: Path) -> None:
    port = ports.free_port()
    with OtlpSink() as sink:
        options = LabOptions(
            services=plan.parse("api,queue,scheduler,binder,node_agent,descheduler,workloads"),
            data_dir=str(tmp_path / "lab"),
            port=port,
            secure=True,
            log_level="debug",
            environment={
                "PODYARD_NATS_SERVERS": f"nats://somebody:{PASSWORD}@127.0.0.1:{port}",
                "OTEL_EXPORTER_OTLP_ENDPOINT": sink.endpoint,
                "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{TOKEN}",
            },
        )
        async with running_lab(options) as lab:
            await lab.until_ready(READY_S)
            security = Path(lab.options.security)
            secrets = secrets_of(security)
            said = {}
            async with connect(lab.person()) as bus, gather(bus) as seen:
                await Actions(bus).apply([written(node("node-1")), written(pod("web")), SECRET], "a test")
                await seen.until("bound", lambda: ("default", "web") in seen.view.pods, WITHIN_S)
                shown = await objects_client.reveal(bus, [ObjectRef(resource="secrets", name="db")])
                assert [one.data for one in shown] == [{"password": ENCODED}]
            for words in (("rotate", "api", "node_agent"), ("env", "person"), ("rotate", "nobody")):
                done = await cli("security", words[0], str(security), *words[1:], url=lab.url)
                said[" ".join(words)] = done.out + done.err
            secrets |= secrets_of(security)
            await lab.server.kill()
            await lab.server.start()
            await lab.until_ready(READY_S)
            said |= served(lab)
            listed = {" ".join(process.cmdline()): process.environ() for process in processes()}
            assert len(listed) >= len(lab.children) + 1
        spans = sink.wait_for(lambda spans: {span.name for span in spans} >= {"attempt", "bind", "start pod"})
        said["spans"] = repr(spans)
    logs = list((tmp_path / "lab").rglob("*.log"))
    assert len(logs) == len(options.services) + 1
    said |= {str(path): path.read_text(errors="replace") for path in logs}
    said |= {f"command {number}": line for number, line in enumerate(listed)}
    files = [path for path in (tmp_path / "lab").rglob("*") if path.is_file()]
    assert any("CLUSTER" in str(path) for path in files)
    assert [path for path in files if any(sign in path.read_bytes() for sign in SIGNS)] == []
    assert [where for where, text in said.items() if any(sign.decode() in text for sign in SIGNS)] == []
    everything = secrets | {PASSWORD, TOKEN, "somebody"}
    assert len(secrets) > 60
    assert [(where, secret) for where, text in said.items() for secret in everything if secret in text] == []
    variables = [(line, value) for line, given in listed.items() for value in given.values()]
    assert [(line, secret) for line, value in variables for secret in secrets if secret in value] == []
    assert any(PASSWORD in value for _line, value in variables)  # they were given
