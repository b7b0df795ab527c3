"""A service as a real process on a real NATS server."""

import asyncio
import json
import os
import resource
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from podyard.runtime import ports
from tests.support.buses import connected
from tests.support.certificates import DAY, Authority
from tests.support.otlp_sink import OtlpSink
from tests.support.waiting import eventually

SERVICE = Path(__file__).with_name("echo_service.py")
LIMIT_S = 20


class Running:
    """A service process: its log lines as they come, its exit code."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict] = []
        self._new = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._new:
                self.lines.append(json.loads(line) if line.startswith(b"{") else {"event": line.decode()})
                self._new.notify_all()
        async with self._new:
            self._new.notify_all()

    async def logged(self, event: str) -> dict:
        """The first line that says `event`."""
        async with asyncio.timeout(LIMIT_S), self._new:
            while not (found := [line for line in self.lines if line["event"] == event]):
                if self._reader.done():
                    raise AssertionError(f"it ended without {event!r}: {self.lines}")
                await self._new.wait()
        return found[0]

    async def get(self, path: str) -> tuple[int, str]:
        """Answer of its HTTP endpoint."""
        address = (await self.logged("starting"))["http"]
        return await asyncio.to_thread(_get, f"http://{address}{path}")

    async def becomes(self, path: str, status: int) -> str:
        """Ask until the status is `status`."""

        async def text() -> str | None:
            found, answer = await self.get(path)
            return answer if found == status else None

        return await eventually(f"{status} at {path}", text, LIMIT_S)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(LIMIT_S):
            code = await self.process.wait()
            await self._reader
        return code

    async def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await self.ended()


def _get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@asynccontextmanager
async def service(mode: str, url: str, **settings: str):
    environment = {
        **os.environ,
        "PODYARD_NATS_SERVERS": url,
        "PODYARD_INSTANCE": "echo-0",
        "PODYARD_LOG_FORMAT": "json",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVICE), mode, env=environment | settings, stderr=asyncio.subprocess.PIPE
    )
    running = Running(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()


async def test_it_serves_is_described_and_ends_in_order(nats_server):
    async with service("serve", nats_server.url, PODYARD_ECHO_GREETING="hi") as running, connected(nats_server) as bus:
        await running.becomes("/readyz", 200)
        text = (await running.get("/readyz?verbose"))[1]
        assert "[+]nats ok" in text
        assert "[+]streams ok" in text
        assert (await bus.request("test.echo", b"you")).payload == b"hi you"
        about = json.loads((await bus.request("$SRV.INFO.podyard-echo", b"")).payload)
        assert about["description"] == "answers what it is told"
        assert [endpoint["subject"] for endpoint in about["endpoints"]] == ["test.echo"]
        stats = json.loads((await bus.request("$SRV.STATS.podyard-echo", b"")).payload)
        assert stats["endpoints"][0]["num_requests"] == 1
        assert "process_cpu_seconds_total" in (await running.get("/metrics"))[1]
        assert json.loads((await running.get("/configz"))[1])["echo"] == {"greeting": "hi"}
        assert await running.stop() == 0
        events = [line["event"] for line in running.lines]
        assert events[events.index("stopping") :] == ["stopping", "finished what was in hand", "stopped"]


async def test_it_waits_for_nats_says_so_and_goes_on_when_nats_comes_back(nats_server):
    await nats_server.kill()
    async with service("serve", nats_server.url) as running:
        text = await running.becomes("/readyz", 500)
        assert f"[-]nats failed: waiting for NATS at {nats_server.url}" in text
        assert (await running.get("/healthz"))[0] == 200
        await running.logged("no NATS")
        await nats_server.start()
        await running.becomes("/readyz", 200)
        await nats_server.kill()
        await running.becomes("/readyz", 500)
        await nats_server.start()
        await running.becomes("/readyz", 200)
        async with connected(nats_server) as bus:
            assert (await bus.request("test.echo", b"you")).payload == b"hello you"
        assert await running.stop() == 0


async def test_a_password_in_an_address_is_nowhere_to_be_seen(nats_server):
    url = nats_server.url.replace("://", "://somebody:hush-hush@")
    async with service("serve", url) as running:
        await running.becomes("/readyz", 200)
        seen = [(await running.get(path))[1] for path in ("/configz", "/readyz", "/metrics")]
        assert "nats://***@" in seen[0]
        await nats_server.kill()
        seen.append(await running.becomes("/readyz", 500))
        await running.logged("no NATS")
        await nats_server.start()
        await running.becomes("/readyz", 200)
        assert await running.stop() == 0
        seen.append(json.dumps(running.lines))
    assert [text for text in seen if "hush-hush" in text or "somebody" in text] == []


@pytest.fixture
def core_dumps() -> Iterator[None]:
    """What is started may have core dumps, as far as this process may allow it."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.mark.usefixtures("core_dumps")
async def test_it_leaves_no_core_dump_and_nobody_of_its_user_looks_into_it(nats_server):
    async with service("serve", nats_server.url) as running:
        assert (await running.logged("dumpable"))["answer"] == 0
        assert _core_limit(running.process.pid) == "0"


@pytest.mark.usefixtures("core_dumps")
async def test_who_debugs_it_may_have_core_dumps(nats_server):
    async with service("serve", nats_server.url, PODYARD_CORE_DUMPS="true") as running:
        assert (await running.logged("dumpable"))["answer"] == 1
        assert _core_limit(running.process.pid) == _core_limit(os.getpid())


def _core_limit(pid):
    """The soft limit, which counts: bytes, or `unlimited`."""
    [line] = [
        line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max core file size")
    ]
    return line.removeprefix("Max core file size").split()[0]


async def test_it_can_be_ended_while_it_waits_for_nats(nats_server):
    await nats_server.kill()
    async with service("serve", nats_server.url) as running:
        await running.logged("no NATS")
        assert await running.stop() == 0


async def test_a_failure_is_told_and_exits_with_1(nats_server):
    async with service("fail", nats_server.url) as running:
        assert await running.ended() == 1
        assert (await running.logged("the service failed"))["reason"] == "RuntimeError: broken on purpose"


async def test_its_own_end_exits_with_0(nats_server):
    async with service("leave", nats_server.url) as running:
        assert await running.ended() == 0


async def test_an_end_that_hangs_is_cut_off(nats_server):
    async with service("hang", nats_server.url, PODYARD_SHUTDOWN_TIMEOUT_S="0.5") as running:
        await running.becomes("/readyz", 200)
        assert await running.stop() == 1
        await running.logged("the end took too long: exiting at once")


async def test_a_blocked_event_loop_fails_liveness(nats_server):
    async with service("block", nats_server.url, PODYARD_STALL_LIMIT_S="0.5") as running, connected(nats_server) as bus:
        await running.becomes("/readyz", 200)
        bus.send("test.echo", b"block")
        assert "[-]loop failed: it has not run for" in await running.becomes("/healthz", 500)
        await running.becomes("/healthz", 200)


async def test_the_last_spans_go_out_at_the_end(nats_server):
    with OtlpSink() as sink:
        async with (
            service(
                "serve",
                nats_server.url,
                OTEL_EXPORTER_OTLP_ENDPOINT=sink.endpoint,
                OTEL_BSP_SCHEDULE_DELAY="60000",
            ) as running,
            connected(nats_server) as bus,
        ):
            await running.becomes("/readyz", 200)
            await bus.request("test.echo", b"you")
            assert await running.stop() == 0
        assert [(span.name, span.service) for span in sink.spans] == [("echo", "podyard-echo")]


async def test_wrong_settings_are_told_before_anything_starts(nats_server):
    async with service("serve", nats_server.url, PODYARD_HTTP_PORT="web") as running:
        assert await running.ended() == 1
        assert "PODYARD_HTTP_PORT='web'" in running.lines[0]["event"]


async def test_a_taken_port_is_told(nats_server):
    async with service("serve", nats_server.url) as first:
        port = (await first.logged("starting"))["http"].rpartition(":")[2]
        async with service("serve", nats_server.url, PODYARD_HTTP_PORT=port) as second:
            assert await second.ended() == 1
            told = await second.logged("cannot listen")
            assert told["port"] == int(port)
            assert "set http.port to another one, or end what has it" in told["reason"]


async def test_settings_are_shown_over_https_to_who_may_and_files_that_are_no_good_end_it(nats_server, tmp_path):
    authority = Authority(tmp_path)
    pair = authority.issue("server", hosts=["127.0.0.1"])
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("hush-hush,ann,1,system:masters\n")
    tokens.chmod(0o600)
    port = ports.free_port()
    given = {
        "PODYARD_SECURE_PORT": str(port),
        "PODYARD_SECURE_TLS_CERT_FILE": str(pair.certificate),
        "PODYARD_SECURE_TLS_PRIVATE_KEY_FILE": str(pair.key),
        "PODYARD_SECURE_TOKEN_AUTH_FILE": str(tokens),
        "PODYARD_HTTP_PORT": "-1",
    }
    async with service("serve", nats_server.url, **given) as running:
        told = await running.logged("starting")
        assert (told["http"], told["https"]) == ("off", f"0.0.0.0:{port}")
        await running.logged("running")
        base = f"https://127.0.0.1:{port}"
        trusted = ssl.create_default_context(cafile=authority.file)
        async with httpx.AsyncClient(base_url=base, verify=trusted, trust_env=False) as client:
            assert (await client.get("/readyz")).text == "ok"
            assert (await client.get("/configz")).status_code == 401
            shown = await client.get("/configz", headers={"Authorization": "Bearer hush-hush"})
            assert shown.json()["process"]["secure"]["groups"]["system:monitoring"] == ["/metrics"]
            assert "hush-hush" not in shown.text
        assert await running.stop() == 0
        assert "hush-hush" not in json.dumps(running.lines)
    tokens.chmod(0o644)
    authority.issue("server", hosts=["127.0.0.1"], begins=-2 * DAY, ends=-DAY)
    async with service("serve", nats_server.url, **given) as refused:
        assert await refused.ended() == 2
        told = [line["reason"] for line in refused.lines if line["event"] == "a setting is wrong"]
        assert [reason.partition(": ")[0] for reason in told] == [
            f"secure.tls_cert_file {pair.certificate}",
            f"secure.token_auth_file {tokens}",
        ]


async def test_sigusr2_dumps_and_the_service_goes_on(nats_server):
    async with service("dump", nats_server.url) as running, connected(nats_server) as bus:
        await running.becomes("/readyz", 200)
        running.process.send_signal(signal.SIGUSR2)
        assert (await running.logged("a dump failed"))["dump"] == "broken"
        await running.logged("what it holds")
        assert (await bus.request("test.echo", b"you")).payload == b"hello you"
        assert await running.stop() == 0


async def test_sigusr2_ends_no_service_that_has_nothing_to_dump(nats_server):
    async with service("serve", nats_server.url) as running:
        await running.becomes("/readyz", 200)
        running.process.send_signal(signal.SIGUSR2)
        await running.logged("there is nothing to dump")
        assert await running.stop() == 0
