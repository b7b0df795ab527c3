"""Containers as processes of a real kernel: how they start, run as whom, end, and are found again."""

import os
import shutil
import signal
import time
from collections.abc import AsyncIterator

import anyio
import pytest
import pytest_asyncio

from podyard.node_agent.host import groups, launcher
from podyard.node_agent.host.errors import HostError, NotStarted
from podyard.node_agent.host.processes import Processes
from podyard.node_agent.host.readings import Readings
from podyard.node_agent.host.records import Command, Limits, Started
from tests.contract.node_agent.host.stage import POD, Host, busy, hierarchy
from tests.support.waiting import eventually

MI = 1 << 20
FOREVER = "exec sleep 3600"
DEAF = "trap '' TERM; echo deaf; while :; do sleep 3600; done"


@pytest_asyncio.fixture
async def host() -> AsyncIterator[Host]:
    found = Host(hierarchy())
    try:
        yield found
    finally:
        await found.clean()


@pytest_asyncio.fixture(params=[1, 2], ids=["v1", "v2"])
async def any_host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    found = Host(hierarchy(request.param))
    try:
        yield found
    finally:
        await found.clean()


# ---- starting ----------------------------------------------------------------------------------------------


async def test_a_container_runs_in_its_cgroup_from_its_first_instruction(host: Host):
    async with host.runtime():
        await host.run("cat /proc/self/cgroup")
        text = await host.printed(":memory:")
    for controller in sorted(host.hierarchy.controllers):
        assert f":{controller}:/{host.node}/podyard-pods/pod-{POD.uid}/container-main\n" in text


async def test_a_container_runs_as_nobody_in_a_directory_of_its_own_with_nothing_of_the_agents_environment(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "1")
    async with host.runtime() as processes:
        await host.run(
            "id; pwd; touch mine && ls; env; ls -l /proc/self/fd; grep NoNewPrivs /proc/self/status; echo end"
        )
        text = await host.printed("end")
        own = processes.used()[POD.uid].containers["main"].files
    assert "uid=65534" in text
    assert "gid=65534" in text
    assert "groups=0" not in text
    assert f"\n{own}\nmine\n" in text
    assert {line for line in text.splitlines() if "=" in line and not line.startswith("uid")} == {
        f"HOME={own}",
        f"TMPDIR={own}",
        f"PWD={own}",
        "HOSTNAME=web",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    opened = {line.split(" -> ")[1] for line in text.splitlines() if " -> " in line}
    assert {one.partition(":")[0] for one in opened} == {"/dev/null", "pipe", "/proc/" + opened_by(opened)}
    assert "NoNewPrivs:\t1" in text


def opened_by(opened: set[str]) -> str:
    """Of `ls`: the directory that it lists."""
    return next(one for one in opened if one.startswith("/proc/")).removeprefix("/proc/")


async def test_a_container_runs_as_who_it_is_told_with_its_environment_where_it_is_told(host: Host):
    async with host.runtime():
        await host.run(
            "id; pwd; echo $GREETING $HOME", uid=1234, gid=2345, groups=(3456,), working_dir="/usr",
            env={"GREETING": "hello", "HOME": "/tmp", "PATH": "/bin:/usr/bin"},
        )  # fmt: skip
        text = await host.printed("hello /tmp")
    assert "uid=1234 gid=2345 groups=2345,3456" in text
    assert "\n/usr\n" in text


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"uid": 0}, "container main may not run as root: allow_root is off"),
        ({"gid": 0}, "container main may not have the group of root: allow_root is off"),
        ({"groups": (5, 0)}, "container main may not have the group of root: allow_root is off"),
    ],
)
async def test_a_container_is_not_root_unless_that_is_allowed(host: Host, wanted: dict[str, object], why: str):
    async with host.runtime():
        with pytest.raises(NotStarted) as caught:
            await host.run("id", **wanted)
        assert str(caught.value) == why
    async with host.runtime(allow_root=True):
        await host.run("id; grep NoNewPrivs /proc/self/status", uid=0, gid=0)
        text = await host.printed("NoNewPrivs")
    assert "uid=0" in text
    assert "NoNewPrivs:\t0" in text


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (
            Command(container="main", argv=("no-such-program",), env={"PATH": "/bin"}),
            "its command no-such-program cannot be run by user 65534 (PATH=/bin): No such file or directory",
        ),
        (
            Command(container="main", argv=("/etc/passwd",), env={"PATH": "/bin"}),
            "its command /etc/passwd cannot be run by user 65534 (PATH=/bin): Permission denied",
        ),
        (
            Command(container="main", argv=("true",), working_dir="/no/such"),
            "its workingDir /no/such cannot be entered by user 65534: No such file or directory",
        ),
        (Command(container="main", argv=()), "container main has no command, or one with a NUL in it"),
        (Command(container="main", argv=("a\0b",)), "container main has no command, or one with a NUL in it"),
    ],
)
async def test_what_cannot_be_run_is_said(host: Host, command: Command, why: str):
    async with host.runtime() as processes:
        await processes.make(POD, Limits())
        with pytest.raises(NotStarted) as caught:
            await processes.start(POD.uid, command)
        assert (str(caught.value), caught.value.reason, caught.value.code) == (why, "StartError", 128)
        assert host.hierarchy.children(f"{host.node}/podyard-pods/pod-{POD.uid}") == set()
        await eventually("the launcher has gone", lambda: not host.alive())
        await host.run("exit 0")  # it may be tried again
        assert (await host.end()).code == 0


async def test_names_that_lead_elsewhere_are_refused(host: Host):
    async with host.runtime() as processes:
        with pytest.raises(HostError, match="is no uid of a pod"):
            await processes.make(type(POD)(uid="../u", namespace="default", name="web"), Limits())
        await processes.make(POD, Limits())
        with pytest.raises(HostError, match="is no name of a container"):
            await processes.start(POD.uid, Command(container="../a", argv=("true",)))
        with pytest.raises(HostError, match="no pod 'nobody' has been made here"):
            await processes.start("nobody", Command(container="a", argv=("true",)))


async def test_a_container_may_be_called_as_a_file_of_the_kernels(host: Host):
    async with host.runtime():
        await host.run("exit 4", container="tasks")
        assert (await host.end("tasks")).code == 4


async def test_a_container_runs_once_at_a_time(host: Host):
    async with host.runtime():
        await host.run(FOREVER)
        with pytest.raises(HostError, match=f"container main of pod {POD.uid} runs already"):
            await host.run(FOREVER)


async def test_containers_are_not_run_without_root(host: Host, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="run the agent as root"):
        async with host.runtime():
            pass


async def test_two_agents_do_not_run_containers_from_one_directory(host: Host):
    async with host.runtime():
        with pytest.raises(HostError, match=f"another agent runs containers from {host.state}: give each its own"):
            async with host.runtime():
                pass


async def test_state_where_containers_cannot_go_is_refused(host: Host):
    host.state.chmod(0o700)
    kept = host.state / "state"
    with pytest.raises(HostError, match=f"users that may not enter {host.state}, and so not {kept}: let them"):
        Processes(host.hierarchy, host.node, kept, tell=host.ended.append, now=time.time)


# ---- ending ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code", "by", "reason"),
    [("exit 0", 0, 0, "Completed"), ("exit 7", 7, 0, "Error"), ("kill -USR1 $$", 138, 10, "Error")],
)
async def test_how_a_container_ends_is_told(any_host: Host, script: str, code: int, by: int, reason: str):
    before = time.time()
    async with any_host.runtime():
        started = await any_host.run(script, attempt=3)
        ended = await any_host.end()
    assert (ended.code, ended.signal, ended.oom_killed, ended.reason, ended.attempt) == (code, by, False, reason, 3)
    assert before - 1 < started.at == ended.started_at <= ended.ended_at < time.time() + 1


async def test_a_container_is_asked_to_end_and_has_its_grace(any_host: Host):
    async with any_host.runtime() as processes:
        await any_host.run("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.02; done")
        await any_host.printed("up")
        await processes.stop(POD.uid, 30)
        assert (await any_host.end()).code == 3
        assert "bye" in await any_host.printed("bye")
        assert not any_host.alive()


async def test_only_the_command_is_asked_to_end_not_its_children(host: Host):
    async with host.runtime() as processes:
        script = "(trap 'echo child was asked' TERM; while :; do sleep 0.02; done) & trap '' TERM; echo up; wait; wait"
        await host.run(script)
        await host.printed("up")
        await processes.stop(POD.uid, 0.2)
        assert (await host.end()).signal == signal.SIGKILL
        assert await host.printed("up") == "up\n"


async def test_a_command_is_killed_before_its_children_are_kept_from_forking(
    host: Host, monkeypatch: pytest.MonkeyPatch
):
    real = launcher.forbid_new

    def forbid_and_linger(groups: list[str]) -> None:
        real(groups)
        time.sleep(0.3)  # in a thread: long enough for the child to fail and for the command to notice

    monkeypatch.setattr(launcher, "forbid_new", forbid_and_linger)
    async with host.runtime() as processes:
        await host.run("(while :; do sleep 0.02; done) & trap '' TERM; echo up; wait; exit 7")
        await host.printed("up")
        await processes.stop(POD.uid, 0.05)
        ended = await host.end()
        assert await host.printed("up") == "up\n", "its child was killed, too, and had nothing to complain of"
    assert (ended.code, ended.signal) == (137, signal.SIGKILL)


async def test_what_does_not_end_in_its_grace_is_killed_with_all_of_its_processes(any_host: Host):
    async with any_host.runtime() as processes:
        await any_host.run(" ".join(busy(5)) + DEAF)
        await any_host.printed("deaf")
        assert len(any_host.alive()) >= 7
        await processes.stop(POD.uid, 0.2)
        ended = await any_host.end()
        assert (ended.code, ended.signal, ended.reason) == (137, signal.SIGKILL, "Error")
        assert not any_host.alive()


async def test_without_grace_it_is_killed_and_not_asked(host: Host, monkeypatch: pytest.MonkeyPatch):
    sent: list[int] = []
    plain = signal.pidfd_send_signal

    def send(descriptor: int, number: int) -> None:
        sent.append(number)
        plain(descriptor, number)

    monkeypatch.setattr(signal, "pidfd_send_signal", send)
    async with host.runtime() as processes:
        await host.run(FOREVER)
        await processes.stop(POD.uid, 0)
        assert (await host.end()).signal == signal.SIGKILL
    assert set(sent) == {signal.SIGKILL}


async def test_who_asks_again_with_less_grace_has_it_end_sooner(host: Host):
    async with host.runtime() as processes:
        await host.run(DEAF)
        await host.printed("deaf")
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(processes.stop, POD.uid, 3600)
                tasks.start_soon(processes.stop, POD.uid, 0.1)
        assert (await host.end()).signal == signal.SIGKILL


async def test_one_container_of_a_pod_ends_alone(host: Host):
    async with host.runtime() as processes:
        await host.run(FOREVER)
        await host.run(FOREVER, container="side")
        await processes.stop(POD.uid, 30, ["main"])
        assert [one.container for one in host.ended] == ["main"]


async def test_what_a_container_leaves_behind_ends_with_it(any_host: Host):
    async with any_host.runtime():
        await any_host.run(" ".join(busy(3)) + " setsid sleep 3600 & exit 0")
        assert (await any_host.end()).code == 0
        assert not any_host.alive()


async def test_who_is_to_be_killed_has_no_children_any_more(host: Host):
    async with host.runtime() as processes:
        await host.run("while [ ! -e go ]; do :; done; /bin/true; exit 0")
        place = processes.used()[POD.uid].containers["main"]
        launcher.forbid_new(map(str, host.hierarchy.directories(place.group)))
        (place.files / "go").touch()
        assert (await host.end()).code != 0
        assert "fork" in await host.printed("fork")


@pytest.mark.skipif(shutil.which("perl") is None, reason="needs perl: a shell ends when it cannot fork")
async def test_children_of_a_fork_bomb_are_killed(host: Host):
    async with host.runtime() as processes:
        await host.run("exec perl -e '$SIG{TERM} = \"IGNORE\"; while (1) { fork }'", limits=Limits(processes=60))
        await eventually("the bomb goes off", lambda: len(host.alive()) > 50)
        await processes.remove(POD.uid)
        assert not host.alive()


async def test_no_process_is_killed_that_is_not_in_the_cgroup(host: Host):
    outside = await anyio.open_process(["sleep", "3600"])
    async with host.runtime():
        await host.run(FOREVER)
        group = [str(one) for one in host.hierarchy.directories(f"{host.node}/podyard-pods")]
        launcher._kill([*launcher.processes_of(group), outside.pid], group)
        assert (await host.end()).signal == signal.SIGKILL
    outside.terminate()
    assert await outside.wait() == -signal.SIGTERM


async def test_who_exceeds_its_memory_is_oom_killed(host: Host):
    async with host.runtime():
        await host.run("exec tail /dev/zero", limits=Limits(memory_bytes=16 * MI))
        ended = await host.end()
    assert (ended.code, ended.oom_killed, ended.reason) == (137, True, "OOMKilled")


async def test_a_pods_limit_of_memory_holds_for_its_containers_together(host: Host):
    async with host.runtime() as processes:
        await processes.make(POD, Limits(memory_bytes=16 * MI))
        await processes.start(POD.uid, Command(container="main", argv=("tail", "/dev/zero")))
        assert (await host.end()).reason == "OOMKilled"


async def test_limits_may_change_while_a_container_runs(host: Host):
    async with host.runtime() as processes:
        await host.run(FOREVER, limits=Limits(memory_bytes=16 * MI))
        path = host.hierarchy.directory("memory", f"{host.node}/podyard-pods/pod-{POD.uid}/container-main")
        for wanted in (64 * MI, 32 * MI):
            await processes.limit(POD.uid, "main", Limits(memory_bytes=wanted))
            assert (path / "memory.limit_in_bytes").read_text() == f"{wanted}\n"
        await processes.stop(POD.uid, 0)
        await processes.limit(POD.uid, "main", Limits(memory_bytes=MI))
        assert not path.exists(), "it has its limits when it starts"


async def test_a_limit_that_cannot_be_kept_is_said(host: Host):
    async with host.runtime() as processes:
        await host.run("head -c 30M /dev/zero | tail & echo up; sleep 3600")
        await eventually(
            "it uses 30 MiB",
            lambda: groups.memory(host.hierarchy, f"{host.node}/podyard-pods/pod-{POD.uid}").working_set > 30 * MI,
        )
        with pytest.raises(HostError, match=r"memory.limit_in_bytes does not take '1048576': Device or resource busy"):
            await processes.limit(POD.uid, "main", Limits(memory_bytes=MI))


async def test_a_container_is_started_before_it_ends(host: Host):
    async with host.runtime():
        for attempt in range(5):
            await host.run("exit 0", attempt=attempt)
            assert len(host.ended) == attempt
            await eventually("it ends", lambda attempt=attempt: len(host.ended) > attempt)


async def test_of_what_is_printed_the_last_is_kept(host: Host):
    async with host.runtime(log_bytes=4096) as processes:
        await host.run("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo to stderr >&2")
        await host.end()
        log = processes.log(POD.uid, "main", 0)
        assert log.read_text().endswith("line 2999\nto stderr\n")
        before = log.with_name("0.log.1")
        assert log.stat().st_size <= 4096
        assert 0 < before.stat().st_size <= 4096
        assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_a_full_disk_does_not_take_how_a_container_ended(host: Host):
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("a small disk needs the programs mount and umount")
    mounted = await anyio.run_process([mount, "-t", "tmpfs", "-o", "size=256k", "none", str(host.state)], check=False)
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted: {mounted.stderr.decode().strip()}")
    try:
        host.state.chmod(0o711)
        async with host.runtime() as processes:
            await host.run("cat /dev/zero > data; exit 5")
            assert (await host.end()).code == 5
            assert not os.statvfs(host.state).f_bavail
            with pytest.raises(HostError, match=r"containers/other.* No space left on device"):
                await host.run("true", container="other")
        async with host.runtime() as processes:
            ended = next(one for one in processes.found[0].containers if one.container == "main")
            assert not isinstance(ended, Started)
            assert ended.code == 5
            await processes.remove(POD.uid)
    finally:
        await host.clean()
        await anyio.run_process([umount, str(host.state)], check=False)


async def test_the_logs_of_two_runs_are_kept_and_the_files_of_one(host: Host):
    async with host.runtime() as processes:
        for attempt in range(3):
            await host.run("ls; touch left; echo run", attempt=attempt)
            await eventually("it ends", lambda attempt=attempt: len(host.ended) > attempt)
        logs = processes.used()[POD.uid].containers["main"].logs
        assert sorted(path.name for path in logs.iterdir()) == ["1.log", "2.log"]
        assert (logs / "2.log").read_text() == "run\n"


# ---- removing ----------------------------------------------------------------------------------------------


async def test_nothing_of_a_pod_is_left_when_it_is_removed(any_host: Host):
    async with any_host.runtime() as processes:
        await any_host.run(f"mkdir -p a/b; echo x > a/b/c; ln -s /tmp away; echo up; {FOREVER}")
        await any_host.printed("up")
        await processes.remove(POD.uid)
        assert (await any_host.end()).signal == signal.SIGKILL
        assert any_host.hierarchy.children(f"{any_host.node}/podyard-pods") == set()
        assert list((any_host.state / "pods").iterdir()) == []
        assert processes.used() == {}


async def test_what_pods_use_is_measured(host: Host):
    async with host.runtime() as processes:
        host.write("memory", "memory.limit_in_bytes", "256M")
        await host.run(f"head -c 3000000 /dev/zero > data; head -c 20M /dev/zero | tail & echo up; {FOREVER}")
        readings = Readings(host.hierarchy, host.node, nodefs=host.state, disks_every_s=0)

        async def seen() -> bool:
            measured = await readings.read(time.time(), processes.used())
            pod = measured.summary.pods[POD.uid]
            signals = measured.summary.signals
            return (
                (pod.memory_bytes or 0) > 20 * MI
                and (pod.ephemeral_bytes or 0) > 3_000_000
                and signals["memory.available"].capacity == 256 * MI
                and signals["memory.available"].available < 236 * MI
            )

        await eventually("usage of 20 MiB and 3 MB on disk", seen)


# ---- another agent -----------------------------------------------------------------------------------------


async def test_an_agent_finds_what_one_before_it_started(any_host: Host):
    async with any_host.runtime():
        went = await any_host.run("exit 5", container="went")
        await any_host.end("went")
        runs = await any_host.run(FOREVER, container="runs")
        files = any_host.processes.used()[POD.uid].containers["runs"].files
    any_host.ended.clear()
    assert runs.pid in any_host.alive(), "the agent's end is not the container's"
    async with any_host.runtime() as processes:
        (found,) = processes.found
        assert (found.pod, processes.notes) == (POD, ())
        of_runs, of_went = found.containers
        assert of_runs == runs
        assert not isinstance(of_went, Started)
        assert (of_went.container, of_went.code, of_went.started_at) == ("went", 5, went.at)
        assert list(processes.used()[POD.uid].containers) == ["runs", "went"]
        assert files.is_dir()
        await processes.stop(POD.uid, 0)
        assert [(one.container, one.signal) for one in any_host.ended] == [("runs", signal.SIGKILL)]


async def test_how_a_container_ended_while_no_agent_lived_is_known(host: Host):
    async with host.runtime():
        started = await host.run("setsid sleep 3600 & sleep 0.2; exit 9")
    await eventually("it ends, and what it left behind", lambda: not host.alive())
    async with host.runtime() as processes:
        (ended,) = processes.found[0].containers
    assert not isinstance(ended, Started)
    assert (ended.code, ended.reason, ended.started_at) == (9, "Error", started.at)
    assert ended.ended_at - ended.started_at >= 0.2
    assert host.ended == [], "what `found` says is not told again"


async def test_a_found_container_is_told_when_it_ends(host: Host):
    async with host.runtime():
        await host.run("while [ ! -e go ]; do sleep 0.02; done; exit 6")
        files = host.processes.used()[POD.uid].containers["main"].files
    async with host.runtime():
        (files / "go").touch()
        assert (await host.end()).code == 6


def launcher_of(host: Host) -> int:
    """The one process that stays with the one container."""
    group = host.hierarchy.directories(f"{host.node}/podyard-launchers")
    (found,) = launcher.processes_of(map(str, group))
    return found


async def test_without_its_launcher_nobody_knows_how_a_container_ended(host: Host):
    async with host.runtime() as processes:
        started = await host.run(FOREVER)
        os.kill(launcher_of(host), signal.SIGKILL)
        ended = await host.end()
        assert (ended.code, ended.reason, ended.started_at) == (None, "ContainerStatusUnknown", started.at)
        assert not host.alive(), "nobody would see it end"
        del processes
    async with host.runtime() as processes:
        (found,) = processes.found[0].containers
        assert found == ended


async def test_a_container_whose_launcher_died_with_the_agent_is_watched_until_it_ends(host: Host):
    async with host.runtime() as processes:
        started = await host.run("trap 'touch asked; exit' TERM; while :; do sleep 0.02; done")
        files = processes.used()[POD.uid].containers["main"].files
    os.kill(stays := launcher_of(host), signal.SIGKILL)
    await eventually("the launcher has gone", lambda: stays not in host.alive())
    async with host.runtime() as processes:
        assert processes.found[0].containers == (started,)
        await processes.stop(POD.uid, 30)
        assert (await host.end()).reason == "ContainerStatusUnknown"
    assert (files / "asked").exists()


async def test_a_process_that_has_the_number_of_one_before_is_another(host: Host, monkeypatch: pytest.MonkeyPatch):
    async with host.runtime():
        await host.run("exit 0")
        await host.end()
        record = host.processes._store.record(POD.uid, "main")
        assert record is not None
        for one in ("ended_at", "code"):
            record.pop(one)
        record["launcher"] = record["main"] = [os.getpid(), 1]
        host.processes._store.write_record(POD.uid, "main", record)
    async with host.runtime() as processes:
        (found,) = processes.found[0].containers
        assert not isinstance(found, Started)
        assert found.reason == "ContainerStatusUnknown"


async def test_after_the_machine_was_started_again_nothing_runs(host: Host):
    async with host.runtime():
        await host.run(FOREVER)
        record = host.processes._store.record(POD.uid, "main")
        assert record is not None
        host.processes._store.write_record(POD.uid, "main", {**record, "boot": "before"})
    async with host.runtime() as processes:
        (found,) = processes.found[0].containers
        assert not isinstance(found, Started)
        assert found.code is None


async def test_a_cgroup_that_nothing_is_known_of_is_killed_and_removed(host: Host):
    async with host.runtime():
        await host.run(FOREVER)
    pod = f"{host.node}/podyard-pods/pod-{POD.uid}"
    (host.state / "pods" / POD.uid / "pod.json").rename(host.state / "pods" / POD.uid / "moved")
    other = f"{host.node}/podyard-pods/pod-other"
    host.hierarchy.make(other)
    async with host.runtime() as processes:
        assert processes.found == ()
        assert processes.notes == (
            f"nothing is known of the cgroup {other}: what ran in it was killed",
            f"nothing is known of the pod in {host.state}/pods/{POD.uid}: it was killed and removed",
        )
        assert host.hierarchy.children(f"{host.node}/podyard-pods") == set()
        await eventually("all have ended", lambda: not host.alive())
    assert not (host.hierarchy.directory("memory", pod)).exists()
