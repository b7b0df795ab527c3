"""The embedded server: its port, store, end with its parent, and what it says when it cannot start."""

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from podyard.bus import (
    Bus,
    BusSettings,
    EmbeddedServerError,
    NoResponders,
    Outgoing,
    Unclear,
    _launcher,
    connect,
    embedded_server,
    ensure_streams,
)
from podyard.bus.embedded import server_binary
from podyard.proto.streams import MAX_PAYLOAD_BYTES
from tests.support.waiting import eventually

PARENT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it from birth
import asyncio, sys
from pathlib import Path
from podyard.bus import embedded_server

async def main():
    async with embedded_server(Path(sys.argv[1])) as server:
        print(server.pid, server.port, flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def ended(pid: int) -> bool:
    return not runs(pid)


async def refuses(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return True
    writer.close()
    await writer.wait_closed()
    return False


async def test_it_keeps_port_and_store_over_a_kill(tmp_path: Path):
    async with embedded_server(tmp_path) as server, connect(BusSettings(servers=(server.url,), name="t")) as bus:
        await ensure_streams(bus)
        await bus.publish(Outgoing("cluster.pods.d.a", b"kept", expect=0))
        url, pid = server.url, server.pid
        await server.kill()
        assert not runs(pid)
        await server.start()
        assert server.url == url
        assert server.pid != pid
        found = await eventually("what was stored", lambda: stored(bus))
        assert found == b"kept"


async def stored(bus: Bus) -> bytes | None:
    try:
        found = await bus.get("CLUSTER", "cluster.pods.d.a")
    except (NoResponders, Unclear):
        return None
    return found and found.payload


async def test_a_temporary_store_is_removed():
    async with embedded_server() as server:
        store = server.store_dir
        assert store.exists()
    assert not store.exists()
    assert not runs(server.pid)


async def test_a_store_of_ones_own_stays(tmp_path: Path):
    async with embedded_server(tmp_path / "deep" / "store"):
        pass
    assert (tmp_path / "deep" / "store" / "jetstream").is_dir()


async def test_it_listens_on_loopback_and_takes_large_messages():
    async with embedded_server() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        info = json.loads((await reader.readline()).removeprefix(b"INFO "))
        writer.close()
        await writer.wait_closed()
    assert info["host"] == "127.0.0.1"
    assert info["max_payload"] == MAX_PAYLOAD_BYTES


async def test_a_taken_port_is_a_clear_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(EmbeddedServerError, match="did not become ready"):
            async with embedded_server(port=taken.getsockname()[1]):
                pass


async def test_wrong_settings_are_a_clear_error():
    with pytest.raises(EmbeddedServerError, match=r"ended with code 1.*nats-server.conf:2"):
        async with embedded_server(settings={"max_payload": "plenty of it"}):
            pass


async def test_two_servers_never_share_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("podyard.bus.embedded.STOP_WITHIN_S", 0.2)
    async with embedded_server(tmp_path):
        with pytest.raises(EmbeddedServerError, match="another nats-server uses"):
            async with embedded_server(tmp_path):
                pass


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_it_ends_with_its_parent(tmp_path: Path, with_signal: signal.Signals):
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert parent.stdout is not None
    pid, port = map(int, (await parent.stdout.readline()).split())
    assert runs(pid)
    parent.send_signal(with_signal)
    await parent.wait()
    await eventually("the server's end", lambda: ended(pid))
    await eventually("its port refuses: threads outlive the first one, and hold it", lambda: refuses(port))
    async with embedded_server(tmp_path):
        pass  # the store is free again


async def test_without_the_kernels_help_a_supervisor_ends_it(tmp_path: Path):
    """Where there is no parent-death signal: the launcher stays and watches the pipe that only the parent
    holds."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(_launcher.__file__).parent)!r})
import _launcher
_launcher._dies_with_parent = lambda: False
_launcher.main(sys.argv[1:])
"""
    binary = str(server_binary())
    options = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(tmp_path), "--ports_file_dir", str(tmp_path)]
    launcher = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        str(os.getpid()),
        binary,
        *options,
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def server_pid() -> int:
        ports = await asyncio.to_thread(lambda: list(tmp_path.glob("*.ports")))
        return next((int(path.stem.rpartition("_")[2]) for path in ports), 0)

    pid = await eventually("the server's process", server_pid)
    assert pid != launcher.pid
    assert runs(pid)
    assert launcher.stdin is not None
    launcher.stdin.close()  # as the kernel does at the parent's end
    await eventually("the server's end", lambda: ended(pid))
    assert await launcher.wait() != 0


async def test_a_launcher_whose_parent_is_gone_already_starts_nothing(tmp_path: Path):
    marker = tmp_path / "started"
    launcher = await asyncio.create_subprocess_exec(
        sys.executable, _launcher.__file__, "1", "/usr/bin/touch", str(marker), stdin=asyncio.subprocess.PIPE
    )
    assert await launcher.wait() == 1
    assert not marker.exists()
