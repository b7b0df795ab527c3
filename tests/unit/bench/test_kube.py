"""`bench kube`: what it stores is what it changes, answers are read as they come, and the report says what
was measured."""

import io

import anyio
import pytest
from anyio.abc import ByteStream
from rich.console import Console

from podyard.bench import kube
from podyard.bench.render import kube as shown_kube
from podyard.cli.__main__ import main

RESULT = kube.KubeResult(
    pods=5000,
    list_s=0.02,
    list_first_s=0.6,
    list_cpu_s=0.03,
    table_s=0.06,
    table_cpu_s=0.05,
    watchers=100,
    changes_a_second=500.0,
    watched_s=20.0,
    watch_cores=0.537,
    behind_ms=45.0,
    many=50_000,
    pages_s=2.5,
    before_mib=700.0,
    pages_mib=(710.0, 711.0, 760.0),
)


class Given(ByteStream):
    """Bytes that come one by one."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    async def receive(self, max_bytes: int = 65536) -> bytes:
        if not self._left:
            raise anyio.EndOfStream
        found, self._left = self._left[:1], self._left[1:]
        return found

    async def send(self, item: bytes) -> None:
        raise NotImplementedError

    async def send_eof(self) -> None: ...

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", [b"12345"]),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\na\n\r\n3\r\nb\nc\r\n0\r\n\r\n", [b"a\n", b"b\nc"]),
    ],
    ids=["whole", "in chunks"],
)
async def test_an_answer_is_read_as_it_comes(content: bytes, parts: list[bytes]) -> None:
    answer = kube.Answer(Given(content))
    await answer.begin()
    assert answer.status == 200
    assert [part async for part in answer.parts()] == parts


def test_a_change_is_of_the_pod_that_was_stored() -> None:
    changes = kube.Changes({"app-000001": 7})
    [message] = changes.due(1)
    [stored] = [kube.version("pods", kube.pod("app-000001"))]
    assert (message.subject, message.expect, stored.expect) == (stored.subject, 7, 0)
    assert message.payload != stored.payload


def test_the_report_shows_figures_beside_their_goals() -> None:
    out = io.StringIO()
    Console(file=out, width=90, force_terminal=True).print(shown_kube.report(RESULT))
    text = out.getvalue()
    for words in ("0.537 cores", "1 cores", "500 changes a second", "50,000 pods", "710.0", "746 MiB"):
        assert words in text
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    yellow = "\x1b[33m"
    assert [name for name, line in rows.items() if yellow in line] == [
        "list of 5,000 pods, first",
        "after all pages, 3 times",
    ]


def test_a_run_that_nobody_can_measure_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "kube", "--pods", "10", "--many", "5"]) == 2
    assert "--many" in capsys.readouterr().err
