"""What is wrong, too large, too much or never read: refused or let go, and everybody else is answered."""

import contextlib
import json
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from podyard.bus import Bus
from podyard.kube_api import bodies, changing, large, serving
from podyard.kube_api.core import openapi, protobuf
from podyard.runtime import connections
from tests.contract.kube_api.conftest import LIMIT_S, Clients, served
from tests.support.waiting import eventually

Document = dict[str, Any]
CONFIGS = "/api/v1/namespaces/default/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
JSON = {"Content-Type": "application/json"}
MOST = 3 * 1024 * 1024


def config(name: str, **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def answered(clients: Clients) -> None:
    """Somebody else is."""
    assert (await clients.ask("GET", CONFIGS)).status_code == 200


# ---- who does not say who he is ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/nobody/v1", "/api/v1/pods", "/api/v1/ponds"),
        *("/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/metrics", "/logs", "/debug/pprof", "/nonsense"),
        *("/api/v1/watch/pods", "/healthzz", "/version/more", "//version", "/api/v1/secrets?watch=true"),
        "/.well-known/openid-configuration",
    ],
)
async def test_nobody_learns_which_paths_there_are(clients: Clients, path: str) -> None:
    for token, code in (("", 401), ("wrong", 401), ("a-stranger", 403)):
        answer = await clients.ask("GET", path, token)
        assert (answer.status_code, answer.json()["kind"], answer.json()["code"]) == (code, "Status", code)
    written = await clients.ask("POST", path, "", content=b"x" * 100)
    assert written.status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/livez/ping", "/readyz", "/version"])
async def test_everybody_reads_health_and_version(clients: Clients, path: str) -> None:
    assert (await clients.ask("GET", path, "")).status_code in ((200, 404) if path.endswith("ping") else (200,))
    assert (await clients.ask("POST", path, "")).status_code == 405


# ---- bodies ------------------------------------------------------------------------------------------------


async def pieces(count: int, size: int = 64 * 1024) -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for at in range(0, count, size):
        yield b" " * min(size, count - at)


async def test_a_body_above_the_limit_is_refused_whether_it_says_so_or_not(clients: Clients) -> None:
    for content in (b" " * (MOST + 1), pieces(MOST + 1), b" " * (4 * MOST), pieces(4 * MOST)):
        answer = await clients.ask("POST", CONFIGS, content=content, headers=JSON)
        found = answer.json()
        assert (answer.status_code, found["reason"]) == (413, "RequestEntityTooLarge")
        assert found["message"] == "Request entity too large: limit is 3145728"
        await answered(clients)


async def test_a_body_at_the_limit_is_read(clients: Clients) -> None:
    content = json.dumps(config("c")).encode().ljust(MOST)
    assert (await clients.ask("POST", CONFIGS, content=content, headers=JSON)).status_code == 201


async def test_who_may_not_write_sends_no_large_body(clients: Clients) -> None:
    for token, code in (("", 401), ("a-reader", 403)):
        answer = await clients.ask("POST", CONFIGS, token, content=b" " * MOST, headers=JSON)
        assert answer.status_code == code


async def test_a_body_that_nobody_reads_ends_soon(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REST_S", 0.2)
    with await anyio.to_thread.run_sync(connected, clients) as client:
        client.sendall(b"POST /api/v1/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert (await anyio.to_thread.run_sync(client.recv, 12)) == b"HTTP/1.1 401"
        await eventually("the connection is gone", lambda: gone(client))


async def test_an_object_larger_than_is_stored_is_refused(clients: Clients) -> None:
    await clients.create(CONFIGS, config("c"))
    large_one = config("d", x="x" * (MOST // 2 + 1000))
    created = await clients.ask("POST", CONFIGS, json=large_one)
    patched = await clients.ask("PATCH", f"{CONFIGS}/c", headers=MERGE, json={"data": large_one["data"]})
    for answer in (created, patched):
        assert answer.status_code in (413, 422), answer.text
        assert answer.json()["kind"] == "Status"
    await answered(clients)


NESTED = 5000


def nested_message(levels: int) -> bytes:
    """Fields 1 within each other."""
    found = b""
    for _ in range(levels):
        size, length = len(found), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        found = b"\x0a" + length + bytes([size]) + found
    return found


@pytest.mark.parametrize(
    ("method", "path", "media", "content"),
    [
        ("POST", CONFIGS, "application/json", b'{"a":' * NESTED + b"1" + b"}" * NESTED),
        ("POST", CONFIGS, "application/json", b'{"a":' * (MOST // 5)),
        ("POST", CONFIGS, "application/json", b"[" * MOST),
        ("POST", CONFIGS, "application/yaml", b"[" * NESTED + b"]" * NESTED),
        ("POST", CONFIGS, "application/yaml", b"a: &a [x]\n" + b"".join(b"b%d: [*a,*a]\n" % at for at in range(9))),
        ("POST", CONFIGS, protobuf.MEDIA_TYPE, protobuf.MAGIC + nested_message(3000)),
        ("POST", CONFIGS, protobuf.MEDIA_TYPE, b"\x00" * 1000),
        ("PATCH", f"{CONFIGS}/c", "application/merge-patch+json", b'{"a":' * NESTED + b"1" + b"}" * NESTED),
        ("PATCH", f"{CONFIGS}/c", "application/json-patch+json", b"[" * MOST),
        ("PATCH", f"{CONFIGS}/c", "application/strategic-merge-patch+json", b'{"a":' * NESTED + b"1" + b"}" * NESTED),
        ("PATCH", f"{CONFIGS}/c?fieldManager=m", "application/apply-patch+yaml", b"[" * NESTED + b"]" * NESTED),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else None,
)
async def test_what_is_nested_too_deep_is_refused(
    clients: Clients, method: str, path: str, media: str, content: bytes
) -> None:
    await clients.create(CONFIGS, config("c"))
    answer = await clients.ask(method, path, content=content, headers={"Content-Type": media})
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["kind"] == "Status"
    await answered(clients)


@pytest.mark.parametrize("media", ["text/plain", "application/merge-patch+json", "application/xml", "x" * 4000])
async def test_a_body_in_another_language_is_refused(clients: Clients, media: str) -> None:
    answer = await clients.ask("POST", CONFIGS, content=b"{}", headers={"Content-Type": media})
    assert (answer.status_code, answer.json()["reason"]) == (415, "UnsupportedMediaType")
    assert len(answer.text) < 1000


async def test_parameters_that_nobody_knows_are_ignored(clients: Clients) -> None:
    answer = await clients.ask("GET", f"{CONFIGS}?pretty=true&foo=bar&foo=bar&%00=%ff&watch=false")
    assert answer.status_code == 200
    assert (await clients.ask("POST", f"{CONFIGS}?nobody=knows", json=config("c"))).status_code == 201


async def test_what_no_client_library_would_say_is_refused(clients: Clients) -> None:
    for said in (b"GET\r\n\r\n", b"\x00\x01\x02\r\n\r\n", b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n"):
        with anyio.fail_after(LIMIT_S):
            assert (await anyio.to_thread.run_sync(said_raw, clients, said))[:12] in (b"HTTP/1.1 400", b"")
    await answered(clients)


# ---- others do not wait ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PATCH", "apply"])
async def test_others_are_answered_while_a_large_body_is_worked_on(
    clients: Clients, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reads the body, and what tracks who owns its fields, waits here until somebody else was
    answered."""
    await clients.create(CONFIGS, config("c"))
    begun, others_done = threading.Event(), threading.Event()
    waited: list[bool] = []

    def held(work: Any) -> Any:
        def holding(*given: Any, **more: Any) -> Any:
            begun.set()
            waited.append(others_done.wait(LIMIT_S / 4))
            return work(*given, **more)

        return holding

    for module, name in ((bodies, "document"), (bodies, "value"), (bodies, "yaml_document")):
        monkeypatch.setattr(module, name, held(getattr(module, name)))
    for name in ("tracked", "apply"):
        monkeypatch.setattr(changing, name, held(getattr(changing, name)))
    much = config("c" if method != "POST" else "d", x="x" * large.LARGE)
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            if method == "POST":
                answer = await clients.ask("POST", CONFIGS, json=much)
            else:
                headers = MERGE if method == "PATCH" else APPLY
                params = {"fieldManager": "m", "force": "true"}
                answer = await clients.ask("PATCH", f"{CONFIGS}/c", headers=headers, params=params, json=much)
            assert answer.status_code in (200, 201), answer.text

        tasks.start_soon(ask)
        await eventually("it is worked on", begun.is_set)
        await answered(clients)
        others_done.set()
    assert waited == [True, True], "both were done in a thread"


async def test_nobody_waits_for_the_first_index_of_openapi(
    bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is described of built-in kinds is made at start."""
    openapi._built_in.cache_clear()
    async with served(bus, tmp_path) as clients:
        monkeypatch.setattr(openapi, "_page", None)
        index = await clients.ask("GET", "/openapi/v3")
    assert (index.status_code, "apis/apps/v1" in index.json()["paths"]) == (200, True)


async def test_bodies_take_so_much_room_together_and_no_more(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come meanwhile are told to come again."""
    go_on = anyio.Event()
    count = large.HELD_BYTES // MOST
    come = 0

    async def slow() -> AsyncIterator[bytes]:
        nonlocal come
        yield json.dumps(config("c")).encode().ljust(MOST - 1)
        come += 1
        await go_on.wait()
        yield b" "

    codes: list[int] = []

    async def ask() -> None:
        codes.append((await clients.ask("POST", CONFIGS, content=slow(), headers=JSON)).status_code)

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(ask)
        await eventually("all are held", lambda: come == count)

        async def refused() -> httpx.Response | None:
            answer = await clients.ask("POST", CONFIGS, content=b" " * MOST, headers=JSON)
            return answer if answer.status_code == 429 else None

        answer = await eventually("there is no room", refused)
        assert (answer.json()["reason"], answer.headers["retry-after"]) == ("TooManyRequests", "1")
        assert (await clients.ask("POST", CONFIGS, json=config("small"))).status_code == 201
        go_on.set()
    assert sorted(codes) == [201] + [409] * (count - 1)
    assert (await clients.ask("POST", CONFIGS, content=b" " * MOST, headers=JSON)).status_code == 400


# ---- who does not read, and who does not ask ---------------------------------------------------------------


def connected(clients: Clients, *, receives: int = 0) -> ssl.SSLSocket:
    """A connection by hand.

    :param receives: bytes that the kernel takes for it; 0: as it likes
    """
    host, _, port = clients.url.removeprefix("https://").partition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    plain = socket.socket()
    if receives:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    plain.settimeout(LIMIT_S)
    plain.connect((host, int(port)))
    return context.wrap_socket(plain)


def said_raw(clients: Clients, said: bytes) -> bytes:
    with connected(clients) as client:
        client.sendall(said)
        try:
            return client.recv(4096)
        except (ConnectionError, ssl.SSLError):
            return b""


def asked(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a-person\r\n\r\n".encode()


def never_reading(clients: Clients, path: str) -> ssl.SSLSocket:
    client = connected(clients, receives=4096)
    client.sendall(asked(path))
    return client


async def gone(client: ssl.SSLSocket) -> bool:
    """Whether the other side has ended the connection: what is sent comes back as a reset."""
    try:
        await anyio.to_thread.run_sync(client.sendall, b"x")
    except (OSError, ssl.SSLError):
        return True
    return False


@pytest.mark.parametrize("path", [f"{CONFIGS}?watch=true", CONFIGS], ids=["watch", "list"])
async def test_who_does_not_read_is_let_go(
    bus: Bus, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "SEND_S", 0.5)
    async with served(bus, tmp_path, request_s=LIMIT_S / 4) as clients:
        for at in range(8):
            await clients.create(CONFIGS, config(f"c{at}", x=os.urandom(500_000).hex()))
        client = await anyio.to_thread.run_sync(never_reading, clients, path)
        with contextlib.closing(client):
            await eventually("the connection is gone", lambda: gone(client), LIMIT_S)
        assert clients.count("podyard_kube_api_watches") == 0
        assert clients.count("podyard_kube_api_connections_let_go_total", reason="slow") == 1
        await answered(clients)


async def test_thousands_of_connections_keep_nobody_out(bus: Bus, tmp_path: Path) -> None:
    """Who has come in last without asking anything goes first."""
    async with served(bus, tmp_path, connections=40) as clients:
        with contextlib.ExitStack() as stack:
            for _ in range(200):
                client = await anyio.to_thread.run_sync(connected, clients)
                stack.enter_context(client)
            await answered(clients)
            assert clients.count("podyard_kube_api_connections_let_go_total", reason="crowded") >= 160
