"""`bench kube`: what the Kubernetes API costs: lists over HTTPS, pages of a large list, many watchers of all
pods while they change.

Nodes, pods and their places are stored as api and binder would have stored them, and changed as the api would
change them: of the services `kube_api` alone runs, so that what it costs is what is seen.
"""

import base64
import itertools
import ssl
import statistics
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import msgspec
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from podyard.bench import agent, cluster, meters
from podyard.bench.versions import version
from podyard.bus import Ack, Bus, Outgoing
from podyard.proto import subjects

Progress = Callable[[str], None]
PATH: Final = "/api/v1/pods"
JSON: Final = "application/json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
"""What kubectl asks for first."""
ROUNDS: Final = 5
"""Of each list, and of all pages."""
PAGE: Final = 500
"""Items: kubectl's chunks. Source: kubernetes v1.36.2, kubectl/pkg/cmd/get/get.go, --chunk-size."""
NODES: Final = 500
EVERY_S: Final = 0.004
"""Between two groups of changes."""
SEEN_WITHIN_S: Final = 600.0
"""On a machine that does other things."""
LOOK_S: Final = 0.05
MIB: Final = 1024**2
LARGEST_LINE: Final = 64 * 1024


class KubeError(Exception):
    """The run did not go as it must for the figures to mean anything."""


class KubeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Seconds are of the wall, of lists the median of five; CPU is that of `kube_api` alone."""

    pods: int
    """That are listed whole and watched."""
    list_s: float
    list_first_s: float
    """The same when nothing was written before."""
    list_cpu_s: float
    table_s: float
    table_cpu_s: float
    watchers: int
    changes_a_second: float
    """That there were."""
    watched_s: float
    watch_cores: float
    behind_ms: float
    """From the last change until all watchers had been told of it."""
    many: int
    """Pods that are listed page by page."""
    pages_s: float
    """All pages, median."""
    before_mib: float
    pages_mib: tuple[float, ...]
    """Resident memory after each time that all pages were read."""


class Client:
    """Asks one API server, a connection for each request."""

    def __init__(self, kubeconfig: Path, port: int = 0) -> None:
        """:param port: of another instance than the kubeconfig's; 0: that one"""
        document: Any = msgspec.json.decode(kubeconfig.read_bytes())
        [given] = document["clusters"]
        [user] = document["users"]
        url = urlsplit(str(given["cluster"]["server"]))
        self._host, self._port = str(url.hostname), port or int(url.port or 443)
        authority = base64.b64decode(given["cluster"]["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._token: str = user["user"]["token"]

    @asynccontextmanager
    async def asked(self, path: str, accept: str = JSON) -> AsyncGenerator["Answer"]:
        """The answer to a GET, as far as its headers."""
        connected = await anyio.connect_tcp(
            self._host, self._port, tls=True, ssl_context=self._tls, tls_standard_compatible=False
        )
        async with connected as stream:
            asking = {"Host": self._host, "Authorization": f"Bearer {self._token}", "Accept": accept}
            head = "".join(f"{name}: {value}\r\n" for name, value in asking.items())
            await stream.send(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
            answer = Answer(stream)
            await answer.begin()
            yield answer

    async def whole(self, path: str, accept: str = JSON) -> bytes:
        """A whole answer.

        :raises KubeError: it is a refusal
        """
        async with self.asked(path, accept) as answer:
            body = b"".join([part async for part in answer.parts()])
            if answer.status != 200:
                raise KubeError(f"GET {path} was answered {answer.status}: {body[:300]!r}")
            return body


class Answer:
    """One answer of HTTP/1.1."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = BufferedByteReceiveStream(stream)
        self.status = 0
        self._headers: Mapping[str, str] = {}

    async def begin(self) -> None:
        """Read the status and the headers."""
        head = await self._stream.receive_until(b"\r\n\r\n", LARGEST_LINE)
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        split = (line.partition(":") for line in lines)
        self._headers = {name.strip().lower(): value.strip() for name, _, value in split}

    async def parts(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        if "content-length" in self._headers:
            yield await self._stream.receive_exactly(int(self._headers["content-length"]))
            return
        while size := int(await self._stream.receive_until(b"\r\n", LARGEST_LINE), 16):
            yield (await self._stream.receive_exactly(size + 2))[:-2]


class Watching:
    """What watchers were told."""

    def __init__(self, watchers: int) -> None:
        self.open = 0
        self.told = [0] * watchers
        """Events, by watcher."""

    async def watch(self, client: Client, number: int, path: str) -> None:
        """Count events for ever."""
        async with client.asked(path) as answer:
            if answer.status != 200:
                raise KubeError(f"a watch was answered {answer.status}")
            self.open += 1
            async for part in answer.parts():
                self.told[number] += part.count(b"\n")
        raise KubeError("a watch has ended")


class Changes:
    """Versions of pods as the api would write them."""

    def __init__(self, sequences: dict[str, int]) -> None:
        self._sequences = sequences
        self._turn = itertools.cycle(list(sequences))
        self._number = itertools.count()

    def due(self, count: int) -> list[Outgoing]:
        """So many changes, each of another pod, in turn."""
        names = list(itertools.islice(self._turn, count))
        return [version(subjects.PODS, self._changed(name), self._sequences[name]) for name in names]

    def _changed(self, name: str) -> dict[str, Any]:
        document = pod(name)
        document["metadata"]["annotations"] = {"podyard.io/bench": str(next(self._number))}
        return document

    async def make(self, bus: Bus, count: int) -> None:
        """Store so many.

        :raises KubeError: the server refuses one
        """
        made = self.due(count)
        for message, answer in zip(made, await bus.publish_many(made), strict=True):
            if not isinstance(answer, Ack):
                raise KubeError(f"{message.subject} was refused: {answer}")
            self._sequences[message.subject.rpartition(".")[2]] = answer.sequence


def pod(name: str) -> dict[str, Any]:
    """A pod of that name, as it is stored first."""
    return cluster.pod("plain", name, f"app-{int(name.rpartition('-')[2]) % cluster.WORKLOADS}", 100)


async def measure(
    bus: Bus,
    kubeconfig: Path,
    pid: int,
    sizes: tuple[int, int],
    load: tuple[int, int, float],
    progress: Progress,
) -> KubeResult:
    """Play it.

    :param pid: of `kube_api`
    :param sizes: pods that are listed whole and watched; pods that are listed page by page
    :param load: watchers, changes a second, seconds
    :raises KubeError: it does not do what it must in time
    """
    few, many = sizes
    client = Client(kubeconfig)
    sequences = await _fill(bus, range(few), progress)
    await _known(client, few)
    progress(f"lists of {few:,} pods")
    lists = await _lists(client, pid, JSON)
    tables = await _lists(client, pid, TABLE)
    watched = await _watched(bus, client, pid, Changes(sequences), load, progress)
    await _fill(bus, range(few, many), progress)
    await _known(client, many)
    before_mib = _memory_mib(pid)
    progress(f"pages of {many:,} pods")
    pages_s: list[float] = []
    pages_mib: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await _pages(client, many)
        pages_s.append(time.perf_counter() - began)
        pages_mib.append(round(_memory_mib(pid), 1))
    return KubeResult(
        pods=few,
        list_s=round(statistics.median(lists.seconds), 3),
        list_first_s=round(lists.seconds[0], 3),
        list_cpu_s=round(lists.cpu_s, 3),
        table_s=round(statistics.median(tables.seconds), 3),
        table_cpu_s=round(tables.cpu_s, 3),
        watchers=load[0],
        changes_a_second=round(watched.changes_a_second, 1),
        watched_s=round(watched.seconds, 1),
        watch_cores=round(watched.cores, 3),
        behind_ms=round(watched.behind_s * 1000, 1),
        many=many,
        pages_s=round(statistics.median(pages_s), 2),
        before_mib=round(before_mib, 1),
        pages_mib=tuple(pages_mib),
    )


async def _fill(bus: Bus, numbers: range, progress: Progress) -> dict[str, int]:
    """Store nodes and these pods with their places; the pods' sequences by name."""
    progress(f"storing {len(numbers):,} pods")
    if not numbers.start:
        await _stored(bus, (version(subjects.NODES, cluster.node(number)) for number in range(NODES)))
    names = [f"app-{number:06}" for number in numbers]
    sequences = await _stored(bus, (version(subjects.PODS, pod(name)) for name in names))
    await _stored(bus, (agent.binding(pod(name), cluster.node_name(int(name[4:]) % NODES)) for name in names))
    return dict(zip(names, sequences, strict=True))


async def _stored(bus: Bus, messages: Iterator[Outgoing]) -> list[int]:
    found: list[int] = []
    while chunk := list(itertools.islice(messages, agent.STORED_AT_ONCE)):
        for message, answer in zip(chunk, await bus.publish_many(chunk), strict=True):
            if not isinstance(answer, Ack):
                raise KubeError(f"{message.subject} was refused: {answer}")
            found.append(answer.sequence)
    return found


async def _known(client: Client, pods: int) -> None:
    """Wait until the service has read so many."""
    with anyio.move_on_after(SEEN_WITHIN_S):
        while True:
            found = msgspec.json.decode(await client.whole(f"{PATH}?limit=1"), type=_Page)
            if found.metadata.left + 1 >= pods:
                return
            await anyio.sleep(LOOK_S)
    raise KubeError(f"after {SEEN_WITHIN_S:g} s it does not know {pods:,} pods")


class _Listed(msgspec.Struct, frozen=True):
    seconds: list[float]
    cpu_s: float
    """Of one, in the middle of all."""


async def _lists(client: Client, pid: int, accept: str) -> _Listed:
    seconds: list[float] = []
    before = _cpu_s(pid)
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await client.whole(PATH, accept)
        seconds.append(time.perf_counter() - began)
    return _Listed(seconds, (_cpu_s(pid) - before) / ROUNDS)


async def _pages(client: Client, pods: int) -> None:
    """Read all pages.

    :raises KubeError: they have other pods
    """
    more, found = "", 0
    while True:
        page = msgspec.json.decode(await client.whole(f"{PATH}?limit={PAGE}&continue={more}"), type=_Page)
        found += len(page.items)
        more = page.metadata.more
        if not more:
            break
    if found != pods:
        raise KubeError(f"the pages had {found:,} pods, not {pods:,}")


class _Metadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")
    more: str = msgspec.field(name="continue", default="")
    left: int = msgspec.field(name="remainingItemCount", default=0)


class _Page(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw]


class _Watched(msgspec.Struct, frozen=True):
    seconds: float
    changes_a_second: float
    cores: float
    behind_s: float


async def _watched(
    bus: Bus, client: Client, pid: int, changes: Changes, load: tuple[int, int, float], progress: Progress
) -> _Watched:
    watchers, rate, lasting_s = load
    progress(f"{watchers} watchers of all pods, {rate} changes a second")
    page = msgspec.json.decode(await client.whole(f"{PATH}?limit=1"), type=_Page)
    path = f"{PATH}?watch=true&allowWatchBookmarks=false&resourceVersion={page.metadata.version}"
    watching = Watching(watchers)
    found: list[_Watched] = []
    async with anyio.create_task_group() as tasks:
        for number in range(watchers):
            tasks.start_soon(watching.watch, client, number, path)
        await _until(lambda: watching.open == watchers, lambda: f"{watching.open} watches were begun")
        found.append(await _told(bus, watching, pid, changes, rate, lasting_s))
        tasks.cancel_scope.cancel()
    return found[0]


async def _told(bus: Bus, watching: Watching, pid: int, changes: Changes, rate: int, lasting_s: float) -> _Watched:
    """Change pods, and wait until all watchers were told."""
    cpu_s, began, made = _cpu_s(pid), time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < lasting_s:
        due = int((passed + EVERY_S) * rate) - made
        await changes.make(bus, due)
        made += due
        await anyio.sleep(max(0.0, made / rate - (time.perf_counter() - began)))
    ended = time.perf_counter()
    await _until(lambda: min(watching.told) >= made, lambda: f"{min(watching.told)} of {made} changes were told")
    told = time.perf_counter()
    return _Watched(ended - began, made / (ended - began), (_cpu_s(pid) - cpu_s) / (told - began), told - ended)


async def _until(done: Callable[[], bool], so_far: Callable[[], str]) -> None:
    with anyio.move_on_after(SEEN_WITHIN_S):
        while not done():  # noqa: ASYNC110  # answers come by themselves
            await anyio.sleep(LOOK_S / 10)
        return
    raise KubeError(f"after {SEEN_WITHIN_S:g} s {so_far()}")


def _cpu_s(pid: int) -> float:
    return meters.cpu_seconds({"": pid})[""]


def _memory_mib(pid: int) -> float:
    return meters.memory_mib({"": pid})[""]
