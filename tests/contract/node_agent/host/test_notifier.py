"""The kernel says that memory runs short, between two looks."""

import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
import pytest_asyncio

from podyard.node_agent.host import groups, notifier
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.groups import Memory
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.machine import PROC
from podyard.node_agent.host.notifier import Notifier
from tests.contract.node_agent.host.stage import UNIFIED, Host, hierarchy
from tests.support.waiting import eventually

MI = 1 << 20
WITHIN_S = 15.0


@pytest_asyncio.fixture
async def host() -> AsyncIterator[Host]:
    found = Host(hierarchy())
    found.hierarchy.make(found.node)
    found.write("memory", "memory.limit_in_bytes", "256M")
    try:
        yield found
    finally:
        await found.clean()


def memory(host: Host) -> Memory:
    return groups.node_memory(host.hierarchy, host.node, PROC)


@contextmanager
def watching(of: Hierarchy, node: str, **options: Path) -> Iterator[Notifier]:
    found = Notifier(of, node, **options)
    try:
        yield found
    finally:
        found.close()


async def test_a_leak_is_told_when_it_crosses_the_threshold(host: Host):
    async with host.runtime():
        with watching(host.hierarchy, host.node) as found:
            found.watch(memory(host), [100 * MI])
            await host.run("head -c 200M /dev/zero | tail")
            with anyio.fail_after(WITHIN_S):
                why = await found.wait()
        assert why == f"memory of the node crossed a threshold (/sys/fs/cgroup/memory/{host.node})"
        await eventually("less than 100 MiB are left", lambda: memory(host).available < 110 * MI)


async def test_nothing_is_told_while_enough_is_left(host: Host):
    async with host.runtime():
        with watching(host.hierarchy, host.node) as found:
            found.watch(memory(host), [20 * MI])
            await host.run("head -c 50M /dev/zero | tail; echo leaked; sleep 3600")
            await eventually("memory is used", lambda: memory(host).usage > 40 * MI)
            with anyio.move_on_after(0.2) as waited:
                await found.wait()
        assert waited.cancelled_caught


async def test_of_two_thresholds_each_is_told(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notifier, "SPACING_S", 0.0)
    async with host.runtime():
        with watching(host.hierarchy, host.node) as found:
            found.watch(memory(host), [100 * MI, 200 * MI])
            files = await leaking(host)
            for step, left in (("one", 200 * MI), ("two", 100 * MI)):
                (files / step).touch()
                with anyio.fail_after(WITHIN_S):
                    await found.wait()
                await eventually("that much is used", lambda left=left: memory(host).available < left)


async def leaking(host: Host) -> Path:
    """A container that takes 80 MiB when a file `one` is there, and 80 MiB more when `two` is."""
    take = "while [ ! -e {0} ]; do sleep 0.01; done; (head -c 80M /dev/zero; sleep 3600) | tail & "
    await host.run(take.format("one") + take.format("two") + "sleep 3600")
    (pod,) = host.processes.used().values()
    return pod.containers["main"].files


async def test_thresholds_that_change_replace_those_before(host: Host):
    async with host.runtime():
        with watching(host.hierarchy, host.node) as found:
            found.watch(memory(host), [20 * MI])
            async with anyio.create_task_group() as tasks:
                told = anyio.Event()

                async def wait() -> None:
                    await found.wait()
                    told.set()

                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                found.watch(memory(host), [200 * MI])  # somebody waits already
                (await leaking(host) / "one").touch()
                with anyio.fail_after(WITHIN_S):
                    await told.wait()


async def test_usage_that_swings_around_a_threshold_is_told_not_too_often(host: Host):
    async with host.runtime():
        with watching(host.hierarchy, host.node) as found:
            found.watch(memory(host), [200 * MI])
            await host.run("while :; do head -c 80M /dev/zero | tail > /dev/null; done")
            with anyio.fail_after(WITHIN_S):
                await found.wait()
                first = time.monotonic()
                await found.wait()
            assert time.monotonic() - first >= notifier.SPACING_S


def test_a_mark_is_the_usage_at_which_the_working_set_leaves_so_little():
    of = Memory(usage=100, inactive_file=30, capacity=1000)
    assert notifier.usage_marks(of, [100, 400, 2000]) == (930, 630, 0)


def test_marks_follow_the_page_cache_after_a_time(host: Host, monkeypatch: pytest.MonkeyPatch):
    with watching(host.hierarchy, host.node) as found:
        at = [1000.0]
        monkeypatch.setattr(time, "monotonic", lambda: at[0])
        first = Memory(usage=100 * MI, inactive_file=0, capacity=256 * MI)
        found.watch(first, [50 * MI])
        registered = found._marks
        found.watch(first._replace(inactive_file=30 * MI), [50 * MI])
        assert found._marks == registered == (206 * MI,)
        at[0] += notifier.REFRESH_S
        found.watch(first._replace(inactive_file=30 * MI), [50 * MI])
        assert found._marks == (236 * MI,)


async def test_a_cgroup_that_is_gone_is_said(host: Host):
    with watching(host.hierarchy, host.node) as found:
        found.watch(memory(host), [100 * MI])
        host.hierarchy.remove(host.node)
        with anyio.fail_after(WITHIN_S), pytest.raises(HostError, match=r"event_control has gone: nobody tells"):
            await found.wait()


def test_a_kernel_without_notification_is_said(tmp_path: Path):
    with pytest.raises(HostError, match=r"cgroup.event_control is not there, or may not be written: run as root"):
        Notifier(Hierarchy(1, tmp_path, frozenset({"memory"})), "node")


# ---- version 2: PSI ----------------------------------------------------------------------------------------

BUSY = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"


async def test_pressure_is_told(tmp_path: Path):
    """That of CPUs, in the place of memory's: the kernel tells both alike, and tasks can be made to wait for
    a CPU without harm to others."""
    of = hierarchy(2)
    if not (of.root / "cpu.pressure").exists():
        pytest.skip(f"needs PSI in cgroups: there is no {of.root}/cpu.pressure")
    host = Host(of)
    of.make(host.node)
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "memory.pressure").symlink_to(of.root / host.node / "cpu.pressure")
    procs = of.root / host.node / "cgroup.procs"
    started = [await anyio.open_process([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        with watching(Hierarchy(2, tmp_path, frozenset()), "node") as found:
            with anyio.move_on_after(0.2) as waited:
                await found.wait()
            assert waited.cancelled_caught, "nobody waits yet"
            for one in started:
                procs.write_text(str(one.pid))
            with anyio.fail_after(WITHIN_S):
                why = await found.wait()
        assert why == f"tasks waited for memory for more than 0.1 s in 2 s ({tmp_path}/node/memory.pressure)"
    finally:
        for one in started:
            one.kill()
            await one.wait()
        await host.clean()


def test_a_kernel_without_psi_is_said(tmp_path: Path):
    of = Hierarchy(2, tmp_path, frozenset())
    with pytest.raises(HostError) as caught:
        Notifier(of, "", proc=tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/pressure/memory cannot be watched: No such file or directory; the kernel needs CONFIG_PSI, and "
        "the boot parameter psi=1 if it is off by default"
    )


def test_the_machines_pressure_can_be_watched():
    if not Path("/proc/pressure/memory").exists() or not UNIFIED.exists():
        pytest.skip("needs a kernel with PSI: there is no /proc/pressure/memory")
    with watching(Hierarchy(2, UNIFIED, frozenset()), "") as found:
        found.watch(Memory(1, 1, 1), [1])
