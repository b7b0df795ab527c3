"""kube-scheduler itself, twice, beside Podyard's schedulers on the same nodes, while a binder dies: the
checker of the simulation looks on, and nothing is bound twice or beyond the room of a node.
"""

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest
import yaml

from podyard.bench.programs import kubernetes
from podyard.bench.programs.go_programs import NoProgramError
from podyard.proto import codec, subjects
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.runtime import ports
from tests.faults.stage import Stage
from tests.kube.foreign_stack import HOST, TOKEN, Served, stack
from tests.support import foreign_servers, objects
from tests.support.objects import Document

SERVICES: Final = "api,queue,scheduler=2,binder=2,node_agent,workloads,kube_api"
OWN: Final = "default-scheduler"
THEIRS: Final = {"theirs-json": "application/json", "theirs-protobuf": ""}
"""Names of kube-schedulers, each with the content type that it is told; empty: its own choice."""
EACH: Final = 40
"""Pods of each scheduler: together they want more than twice what the nodes have."""
SETTLED_S: Final = 120.0
LOOK_EVERY_S: Final = 0.5
EXPECTED: Final = (
    # what a scheduler is told of which another was faster
    *("does not take it", "is already assigned to node", "being deleted, cannot be assigned"),
    # its own words, whomever it speaks to: of its flags at its start, and when it is ended
    *("The manifest file is empty, ignoring", "finished without leader elect", "context canceled"),
)


@contextmanager
def schedulers(folder: Path, served: Served) -> Generator[dict[str, Path]]:
    """Both of them; their logs by name."""
    logs: dict[str, Path] = {}
    with ExitStack() as running:
        for name, content in THEIRS.items():
            connection = {
                "kubeconfig": str(_kubeconfig(folder, served)),
                **({"contentType": content} if content else {}),
            }
            config = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": connection,
                "profiles": [{"schedulerName": name}],
            }
            file, logs[name], port = folder / f"{name}.yaml", folder / f"{name}.log", ports.free_port()
            file.write_text(yaml.safe_dump(config), encoding="utf-8")
            words = [
                kubernetes.find(kubernetes.SCHEDULER),
                f"--config={file}",
                f"--bind-address={HOST}",
                f"--secure-port={port}",
                f"--tls-cert-file={served.shown.certificate}",
                f"--tls-private-key-file={served.shown.key}",
            ]
            ready = f"https://{HOST}:{port}/healthz"
            running.enter_context(foreign_servers.running(name, words, ready, logs[name], served.authority))
        yield logs


def _kubeconfig(folder: Path, served: Served) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "lab",
                "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "somebody"}}],
                "clusters": [
                    {"name": "lab", "cluster": {"server": served.url, "certificate-authority": str(served.authority)}}
                ],
                "users": [{"name": "somebody", "user": {"token": TOKEN}}],
            }
        ),
        encoding="utf-8",
    )
    return path


def pod(name: str, scheduler: str, number: int) -> Document:
    cpu = ("250m", "500m", "1", "2")[number % 4]
    made = objects.written(objects.pod(name, cpu=cpu, labels={"app": f"app{number % 3}"}, schedulerName=scheduler))
    if number % 5 == 0:
        port = {"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}
        made["spec"]["containers"][0]["ports"] = [port]
    return made


class Play:
    """Pods of all schedulers, and what became of them."""

    def __init__(self, stage: Stage, client: httpx.AsyncClient) -> None:
        self._stage = stage
        self._client = client

    async def create(self) -> None:
        """All at once, those of one scheduler between those of the others."""
        names = (OWN, *THEIRS)
        for number in range(EACH):
            for scheduler in names:
                document = {"apiVersion": "v1", "kind": "Pod", **pod(f"{scheduler}-{number}", scheduler, number)}
                made = await self._client.post("/api/v1/namespaces/default/pods", json=document)
                assert made.status_code == 201, made.text

    async def delete(self, names: list[str]) -> None:
        for name in names:
            gone = await self._client.delete(f"/api/v1/namespaces/default/pods/{name}")
            assert gone.status_code == 200, gone.text

    async def preempt(self) -> None:
        """Pods of high priority of kube-schedulers: one at least gets the room of others, who are told so."""
        names = [f"{scheduler}-high-{number}" for scheduler in THEIRS for number in range(2)]
        for name in names:
            document = {"apiVersion": "v1", "kind": "Pod", **pod(name, name.partition("-high")[0], 3)}
            document["spec"]["priorityClassName"] = "high"
            made = await self._client.post("/api/v1/namespaces/default/pods", json=document)
            assert made.status_code == 201, made.text
        with anyio.fail_after(SETTLED_S):
            while not {one for name in THEIRS for one in self.bound(name)} & set(names):
                await self._stage.recorder.changed()

    async def in_queue(self) -> set[str]:
        """Whose pods the queue of Podyard has."""
        asked = codec.encode(QueueListRequest(limit=10_000))
        reply = await self._stage.bus.request(subjects.queue_verb("list"), asked, timeout_s=5)
        waiting = {one.name for one in codec.decode(QueueListReply, reply.payload).pods}
        return {one["spec"]["schedulerName"] for name, one in self._pods().items() if name in waiting}

    def bound(self, scheduler: str) -> list[str]:
        """Names of a scheduler's pods that are bound."""
        live = {one.name for one in self._stage.recorder.checker.live.values()}
        return [name for name in self._pods(scheduler) if name in live]

    def unbound(self) -> list[Document]:
        placed = self._stage.recorder.placed
        return [one for one in self._pods().values() if one["metadata"]["uid"] not in placed]

    async def settled(self) -> None:
        """Until no pod that waits fits a node."""
        checker, fits, end = self._stage.recorder.checker, ["nobody looked"], time.monotonic() + SETTLED_S
        while fits and not checker.violations and time.monotonic() < end:
            await anyio.sleep(LOOK_EVERY_S)
            fits = checker.unbound_that_fit(self.unbound())
        assert not fits

    def _pods(self, scheduler: str = "") -> dict[str, Document]:
        return {
            name: one
            for (resource, name), one in self._stage.recorder.objects.items()
            if resource == subjects.PODS and scheduler in ("", one["spec"]["schedulerName"])
        }


def complaints(log: Path) -> list[str]:
    """Lines of errors of a kube-scheduler's log, but for those that say that another was faster."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if line[:1] in "EF" and not any(words in line for words in EXPECTED)]


@pytest.fixture(scope="session", autouse=True)
def program() -> None:
    """Without it the tests fail, with the reason."""
    try:
        kubernetes.find(kubernetes.SCHEDULER)
    except NoProgramError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.mark.timeout(600)
async def test_kube_schedulers_and_podyards_share_nodes(tmp_path: Path) -> None:
    async with stack(tmp_path, SERVICES) as (stage, served), served.client() as client:
        with schedulers(tmp_path, served) as logs:
            play = Play(stage, client)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(play.create)
                await stage.bound(EACH // 2)
                stage.process(await stage.leading("binder")).kill()
            await stage.revive()
            await play.settled()
            assert await play.in_queue() == {OWN}
            before = {name: play.bound(name) for name in (OWN, *THEIRS)}
            await play.delete([name for names in before.values() for name in names[::2]])
            await play.settled()
            after = {name: play.bound(name) for name in (OWN, *THEIRS)}
            await play.preempt()
        await stage.recorder.complete(await stage.bus.last_sequence("CLUSTER"), 5)
        assert stage.recorder.checker.violations == []
        assert stage.recorder.missed == []
        for name in (OWN, *THEIRS):
            assert before[name], f"{name} bound nothing"
            assert set(after[name]) - set(before[name]), f"{name} bound nothing once there was room again"
        assert {name: complaints(log) for name, log in logs.items()} == {name: [] for name in logs}
