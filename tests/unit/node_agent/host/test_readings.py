"""What is left of a host and what its pods use, from files that a kernel wrote."""

import os
import threading
from pathlib import Path

import anyio
import pytest

from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.stats import Observation, PodStats
from podyard.node_agent.host import disks, groups
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.readings import Readings
from tests.support.waiting import eventually
from tests.unit.node_agent.host.make import NODE, Host

MI = 1 << 20
NOW = 1_700_000_000.0
MACHINE = 24_684_092 * 1024
USED = 41_172_992
"""Of the cgroup, 8 MiB of it for a file that was read once."""


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(tmp_path, request.param)


def readings(host: Host, node: str = NODE, **options: float) -> Readings:
    return Readings(host.hierarchy(), node, nodefs=host.disk, proc=host.proc, **options)


async def signal(host: Host, name: str, node: str = NODE) -> Observation:
    return (await readings(host, node).read(NOW, {})).summary.signals[name]


async def pod(host: Host) -> PodStats:
    return (await readings(host).read(NOW, host.pods())).summary.pods["u1"]


def left(available: int, capacity: int) -> Observation:
    return Observation(available=available, capacity=capacity, observed_at=NOW)


async def test_memory_of_a_cgroup_is_its_limit_less_the_working_set(host: Host):
    assert await signal(host, "memory.available") == left(256 * MI - (USED - 8 * MI), 256 * MI)


async def test_memory_of_the_machine_is_all_that_it_has_less_the_working_set_of_the_root(host: Host):
    found = await signal(host, "memory.available", node="")
    # of version 2 the root has no file for its usage: anonymous memory and files together are
    used = {1: int((host.root / "memory/memory.usage_in_bytes").read_text()) if host.version == 1 else 0, 2: 3 << 30}
    inactive = groups.memory(host.hierarchy(), "").inactive_file
    assert inactive > 0
    assert found == left(MACHINE - (used[host.version] - inactive), MACHINE)


async def test_a_working_set_is_never_less_than_nothing(host: Host):
    host.memory().write_text(f"{4 * MI}\n")
    assert await signal(host, "memory.available") == left(256 * MI, 256 * MI)


async def test_nothing_is_left_when_the_kernel_charged_more_than_the_limit(host: Host):
    host.memory().write_text(f"{300 * MI}\n")
    assert await signal(host, "memory.available") == left(0, 256 * MI)


async def test_a_limit_above_what_the_machine_has_is_no_capacity(host: Host):
    host.limit().write_text(f"{2 * MACHINE}\n")
    assert (await signal(host, "memory.available")).capacity == MACHINE


async def test_memory_of_all_pods_is_the_limit_of_their_cgroup_less_its_working_set(host: Host):
    assert await signal(host, "allocatableMemory.available") == left(200 * MI - (41_160_704 - 8 * MI), 200 * MI)


async def test_pods_without_a_limit_have_no_memory_of_their_own(host: Host):
    host.limit(f"{NODE}/podyard-pods").write_text("9223372036854771712\n" if host.version == 1 else "max\n")
    assert "allocatableMemory.available" not in (await readings(host).read(NOW, {})).summary.signals


@pytest.mark.parametrize(
    ("node", "most", "capacity", "used"),
    [
        pytest.param(NODE, "100", 100, 2, id="the cgroup's limit"),
        pytest.param(NODE, "max", 32768, 175, id="without a limit the machine's"),
        pytest.param("", "max", 32768, 175, id="the smaller limit of the machine"),
    ],
)
async def test_processes_that_may_still_begin(host: Host, node: str, most: str, capacity: int, used: int):
    host.file("pids", "pids.max").write_text(f"{most}\n")
    assert await signal(host, "pid.available", node) == left(capacity - used, capacity)


async def test_that_processes_are_counted_for_the_whole_machine_is_said(host: Host):
    assert readings(host).notes == ()
    host.file("pids", "pids.max").write_text("max\n")
    assert readings(host).notes == (
        "the cgroup leak has no limit of processes: they are counted for the whole machine",
    )


async def test_file_systems_have_what_statvfs_says_is_left_for_users(host: Host, monkeypatch: pytest.MonkeyPatch):
    answer = os.statvfs_result((4096, 1024, 1000, 500, 400, 90, 80, 70, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: answer)  # f_frsize, not f_bsize, is the unit of blocks
    signals = (await readings(host).read(NOW, {})).summary.signals
    for name in ("nodefs", "imagefs", "containerfs"):
        assert signals[f"{name}.available"] == left(400 * 1024, 1000 * 1024)
        assert signals[f"{name}.inodesFree"] == left(80, 90)


async def test_a_file_system_that_does_not_count_inodes_has_no_signal_of_them(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    answer = os.statvfs_result((4096, 4096, 1000, 500, 400, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: answer)
    reading = readings(host)
    assert reading.notes == (f"the file system of {host.disk} does not count inodes: they are not measured",)
    assert "nodefs.inodesFree" not in (await reading.read(NOW, {})).summary.signals


def test_the_layout_follows_from_where_images_are(host: Host, monkeypatch: pytest.MonkeyPatch):
    assert readings(host).layout() is Layout.SINGLE
    shared, other = Path("/dev/shm"), host.disk
    if shared.stat().st_dev == other.stat().st_dev:
        pytest.skip("needs a second file system: /dev/shm is on that of the tests' files")
    apart = Readings(host.hierarchy(), NODE, nodefs=other, imagefs=shared, proc=host.proc)
    assert apart.layout() is Layout.DEDICATED


async def test_what_a_pod_uses(host: Host):
    (host.disk / "files").mkdir()
    (host.disk / "logs").mkdir()
    (host.disk / "files" / "data").write_bytes(b"x" * 100_000)
    (host.disk / "logs" / "0.log").write_bytes(b"x" * 5000)
    found = await pod(host)
    files, logs = disks.directory(host.disk / "files"), disks.directory(host.disk / "logs")
    assert files.used_bytes is not None
    assert logs.used_bytes is not None
    assert files.used_bytes >= 100_000
    pod_usage = {1: int(host.memory(f"{NODE}/podyard-pods/pod-u1").read_text()), 2: 41_000_000}[host.version]
    assert found.memory_bytes == pod_usage - 8 * MI
    assert found.processes == 2
    assert [one.name for one in found.containers] == ["web"]
    assert found.containers[0].memory_bytes == 40_886_272 - 8 * MI
    assert (found.containers[0].rootfs, found.containers[0].logs) == (files, logs)
    assert found.ephemeral_bytes == files.used_bytes + logs.used_bytes


async def test_cpu_is_what_was_worked_since_the_reading_before(host: Host):
    reading, web = readings(host), f"{NODE}/podyard-pods/pod-u1/container-web"
    first = await reading.read(NOW, host.pods())
    assert (first.cpu.node, first.cpu.pods, first.cpu.containers) == (None, {}, {})
    for group, seconds in ((NODE, 3.0), (f"{NODE}/podyard-pods/pod-u1", 2.0), (web, 1.0)):
        host.work(group, seconds)
    second = await reading.read(NOW + 2, host.pods())
    assert second.cpu == (1_500_000_000, {"u1": 1_000_000_000}, {("u1", "web"): 500_000_000}, 2.0)


async def test_a_container_that_has_ended_uses_disk_alone(host: Host):
    gone = host.pods()["u1"]
    containers = {"old": gone.containers["web"]._replace(group=f"{NODE}/podyard-pods/pod-u1/container-old")}
    (host.disk / "files").mkdir()
    measured = await readings(host).read(NOW, {"u1": gone._replace(containers=containers)})
    found = measured.summary.pods["u1"].containers[0]
    assert found.memory_bytes == 0
    assert found.rootfs is not None
    assert found.rootfs.inodes == 1


async def test_a_pod_that_has_gone_meanwhile_has_no_stats(host: Host):
    place = host.pods()["u1"]._replace(group=f"{NODE}/podyard-pods/pod-gone")
    measured = await readings(host).read(NOW, {"gone": place})
    assert (measured.summary.pods, measured.unread) == ({}, ())


async def test_a_pod_that_cannot_be_read_is_told_and_others_are_read(host: Host):
    place = host.pods()["u1"]
    broken = place._replace(containers={"web": place.containers["web"]._replace(files=host.disk / "a-file")})
    (host.disk / "a-file").touch()
    measured = await readings(host).read(NOW, {"u2": broken, **host.pods()})
    assert list(measured.summary.pods) == ["u1"]
    assert measured.unread == (
        f"what pod u2 uses cannot be read: the directory {host.disk}/a-file cannot be counted: Not a directory",
    )


async def test_directories_are_counted_again_only_after_a_time(host: Host):
    reading, files = readings(host, disks_every_s=10), host.disk / "files"
    files.mkdir()

    async def inodes(at: float) -> int | None:
        found = (await reading.read(NOW + at, host.pods())).summary.pods["u1"].containers[0].rootfs
        return None if found is None else found.inodes

    assert await inodes(0) == 1
    (files / "new").touch()
    assert await inodes(9) == 1
    assert await inodes(11) == 2


async def test_all_that_failed_is_said_together(host: Host):
    reading = readings(host)
    memory = "memory.stat"
    host.file("memory", memory).write_text("inactive_file lots\n")
    (host.proc / "loadavg").write_text("busy\n")
    host.file("pids", "pids.max").write_text("max\n")
    with pytest.raises(HostError) as caught:
        await reading.read(NOW, {})
    assert str(caught.value) == (
        f"{host.file('memory', memory)} says 'lots' where a number should be; "
        f"{host.proc}/loadavg says 'busy\\n': expected five words, the fourth RUNNING/ALL"
    )


async def test_a_file_system_that_does_not_answer_holds_nobody_up(host: Host, monkeypatch: pytest.MonkeyPatch):
    reading, plain = readings(host), disks.file_system
    begun, answers = threading.Event(), threading.Event()

    def file_system(path: Path) -> disks.FileSystem:
        begun.set()
        answers.wait()
        return plain(path)

    monkeypatch.setattr(disks, "file_system", file_system)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reading.read, NOW, {})
        await eventually("a reading has begun", begun.is_set)
        tasks.cancel_scope.cancel()
    with pytest.raises(HostError) as caught:
        await reading.read(NOW + 10, {})
    assert str(caught.value) == (
        f"the reading that began 10 s ago has not ended: the file system of {host.disk} does not answer"
    )
    answers.set()
    await eventually("it has ended", lambda: not reading._free.locked())
    assert (await reading.read(NOW + 20, {})).at == NOW + 20


def test_a_node_without_a_limit_of_memory_has_no_capacity(host: Host):
    host.limit().write_text("9223372036854771712\n" if host.version == 1 else "max\n")
    with pytest.raises(HostError) as caught:
        readings(host)
    assert str(caught.value) == (
        "the cgroup leak has no memory limit, and so the node no capacity: write one to "
        f"{host.limit()}, for example 256M"
    )


def test_a_node_that_is_not_there_is_refused(host: Host):
    with pytest.raises(HostError, match=r"there is no cgroup .*/nothing: make it, and give it a limit of memory"):
        readings(host, "nothing")
