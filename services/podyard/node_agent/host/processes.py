"""Runs containers as processes, each in a cgroup, and ends them.

A launcher (`launcher`) stays with each container and writes down how it ends. The agent watches launchers by
descriptors of processes, those that it started like those that it found: it may end, and another one goes on.

Containers see the host as it is, and each other: those of one user may signal each other, and what they write
outside of their own directory is counted for nobody.

Exit codes and reasons are those of containerd. Sources: containerd v2, internal/cri/server/events.go;
kubernetes v1.36.2, pkg/kubelet/kubelet_pods.go, for what nobody saw end.
"""

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from podyard.node_agent.host import hierarchies, launcher, limits, machine, starting, store
from podyard.node_agent.host.errors import HostError, NotStarted
from podyard.node_agent.host.files import Missing
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.launcher import Record
from podyard.node_agent.host.records import Command, ContainerPlace, Ended, Found, Limits, PodId, PodPlace, Started
from podyard.node_agent.host.starting import Starting
from podyard.node_agent.host.store import Store

LOG_BYTES: Final = 5 << 20
"""Of each of two files for each run; a container keeps those of two runs."""
ENDS_WITHIN_S: Final = 30.0
"""After SIGKILL. What takes longer waits for a disk or a network file system."""
_AGAIN_S: Final = 0.02
_POD: Final = "pod-"
_CONTAINER: Final = "container-"
"""A container may be called as a file of the kernel's: tasks."""


class _Run:
    """A container that runs."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.ended = anyio.Event()
        self.asked = False
        """Whether it has been told to end."""


class Processes:
    """The containers of one node. Used by one event loop; ends with the `async with`, which leaves them
    running. What is asked of one pod does not overlap, but for `stop`."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        node: str,
        state: Path,
        *,
        tell: Callable[[Ended], None],
        now: Callable[[], float],
        allow_root: bool = False,
        proc: Path = machine.PROC,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        """
        :param node: the cgroup below which those of pods are made; "": the root
        :param state: a directory of this agent's own
        :param tell: told of each container that has ended, on the event loop
        :param now: seconds since 1970, UTC, by the agent's clock
        :param allow_root: whether containers may be root, or become it
        :raises HostError: if no containers can be run
        """
        if os.geteuid():
            raise HostError(
                "containers run as users of their own, which only root can have done: run the agent as root"
            )
        self._hierarchy = hierarchy
        self._pods_group = hierarchies.of_pods(node)
        self._launchers = hierarchies.of_launchers(node)
        self._tell = tell
        self._now = now
        self._boot = machine.boot(proc)
        hierarchy.make(self._launchers)
        hierarchy.make(self._pods_group)
        self._store = Store(state)
        self._starting = Starting(
            hierarchy, self._store, self._launchers, self._boot, now, allow_root=allow_root, log_bytes=log_bytes
        )
        self._runs: dict[tuple[str, str], _Run] = {}
        self._known: dict[str, set[str]] = {}
        """Containers that were ever started, of each pod."""
        self._tasks: TaskGroup = anyio.create_task_group()
        self.found: tuple[Found, ...] = ()
        """What earlier agents made."""
        self.notes: tuple[str, ...] = ()
        """What was found and could not be understood, and has been removed."""

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        try:
            await self._find()
        except BaseException:
            self._tasks.cancel_scope.cancel()
            await self._tasks.__aexit__(None, None, None)
            self._store.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        try:
            if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
                return await self._tasks.__aexit__(kind, error, trace)
            await self._tasks.__aexit__(None, None, None)  # what was raised inside goes on as it is
            return None
        finally:
            self._store.close()

    # ---- pods ----------------------------------------------------------------------------------------------

    async def limit_all(self, wanted: Limits) -> None:
        """Let all pods together use no more than this.

        :raises HostError: if that cannot be kept
        """
        await anyio.to_thread.run_sync(limits.put, self._hierarchy, self._pods_group, wanted)

    async def make(self, pod: PodId, wanted: Limits) -> None:
        """Make cgroup and directory of a pod. If they are there, its limits are these from now on.

        :raises HostError: if that cannot be done
        """
        group = self._group(store.checked_uid(pod.uid))

        def do() -> None:
            self._hierarchy.make(group)
            limits.put(self._hierarchy, group, wanted)
            self._store.make_pod(pod)

        await anyio.to_thread.run_sync(do)
        self._known.setdefault(pod.uid, set())

    async def limit(self, uid: str, container: str, wanted: Limits) -> None:
        """Let other limits hold for a container; one that does not run has those of its next start. `make`
        does so for a pod.

        :raises HostError: if they cannot be kept
        """
        run = self._runs.get((self._checked(uid), store.checked_container(container)))
        if run is None:
            return
        try:
            await anyio.to_thread.run_sync(limits.put, self._hierarchy, self._group(uid, container), wanted)
        except Missing:
            if self._hierarchy.children(self._group(uid)) & {_CONTAINER + container}:
                raise  # else it has ended meanwhile

    async def remove(self, uid: str) -> None:
        """Remove what is left of a pod: processes, cgroup, directory.

        :raises HostError: if something stays; it may be asked for again
        """
        await self.stop(self._checked(uid), 0)
        await self._remove_group(self._group(uid))
        await anyio.to_thread.run_sync(self._store.remove_pod, uid)
        del self._known[uid]

    def used(self) -> Mapping[str, PodPlace]:
        """Where what pods use is seen, by uid."""
        return {
            uid: PodPlace(
                self._group(uid),
                self._store.pod(uid),
                {
                    name: ContainerPlace(
                        self._group(uid, name), self._store.files(uid, name), self._store.logs(uid, name)
                    )
                    for name in sorted(names)
                },
            )
            for uid, names in self._known.items()
        }

    def log(self, uid: str, container: str, attempt: int) -> Path:
        """What a container printed last, both of its streams as they came; before that: with `.1` at the end.

        :raises HostError: if the names cannot be such
        """
        return self._store.log(store.checked_uid(uid), store.checked_container(container), attempt)

    # ---- containers ----------------------------------------------------------------------------------------

    async def start(self, uid: str, command: Command) -> Started:
        """Run a container of a pod that has been made. It has ended, if it ran before. `tell` is told of its
        end after this has returned.

        :raises NotStarted: if its command cannot be run
        :raises HostError: if it cannot be tried
        """
        name = store.checked_container(command.container)
        if (self._checked(uid), name) in self._runs:
            raise HostError(f"container {name} of pod {uid} runs already")
        self._starting.check(command)
        await anyio.to_thread.run_sync(self._starting.prepare, uid, self._group(uid, name), command)
        self._known[uid].add(name)
        told, watched = self._starting.spawn(uid, name)
        try:
            with anyio.move_on_after(starting.WITHIN_S):
                await anyio.wait_readable(told)
            said = starting.said(told)
        except BaseException:  # cancelled: another agent finds it
            os.close(watched)
            raise
        finally:
            os.close(told)
        if isinstance(said, str):
            await self._give_up(uid, name, watched)
            raise NotStarted(said)
        started = Started(uid, name, command.attempt, said[0], said[1])
        self._watch(started, watched)
        return started

    async def stop(self, uid: str, grace_s: float, containers: Iterable[str] | None = None) -> None:
        """End containers: SIGTERM to the command of each, after the grace period SIGKILL to all of its
        processes. Returns when they have ended, and `tell` was told so. Asked again with less grace, they end
        sooner.

        :param grace_s: 0: SIGKILL at once
        :param containers: None: all of the pod
        :raises HostError: if they do not end though they were killed
        """
        names = self._known.get(self._checked(uid), set()) if containers is None else set(containers)
        runs = [run for name in names if (run := self._runs.get((uid, name))) is not None]
        for run in runs:
            if grace_s > 0 and not run.asked:
                run.asked = True
                self._signal(run.started, signal.SIGTERM)
        with anyio.move_on_after(max(grace_s, 0)):
            for run in runs:
                await run.ended.wait()
        left = [run for run in runs if not run.ended.is_set()]
        groups = [part for run in left for part in self._directories(self._group(uid, run.started.container))]
        for run in left:  # before its children: the end of one of them would be news to it, and its end not ours
            self._signal(run.started, signal.SIGKILL)
        with anyio.move_on_after(ENDS_WITHIN_S):
            await self._kill(groups)
            for run in left:
                await run.ended.wait()
        alive = [run.started.container for run in left if not run.ended.is_set()]
        if alive:
            raise HostError(
                f"containers {', '.join(alive)} of pod {uid} were killed and have not ended in {ENDS_WITHIN_S:g} s: "
                f"processes {sorted(launcher.processes_of(groups))[:10]} may wait for a disk"
            )

    async def _give_up(self, uid: str, name: str, watched: int) -> None:
        """It did not start: nothing of it is left."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(watched, signal.SIGKILL)
        try:
            await anyio.wait_readable(watched)
            _reap(watched)
        finally:
            os.close(watched)
        await self._remove_group(self._group(uid, name))

    # ---- watching ------------------------------------------------------------------------------------------

    def _watch(self, started: Started, *descriptors: int) -> None:
        """Know that it runs, until these processes have ended, one after the other."""
        run = self._runs[started.pod_uid, started.container] = _Run(started)
        self._tasks.start_soon(self._until_end, run, descriptors)

    async def _until_end(self, run: _Run, descriptors: tuple[int, ...]) -> None:
        uid, name = run.started.pod_uid, run.started.container
        try:
            for one in descriptors:
                await anyio.wait_readable(one)
                _reap(one)
        finally:
            for one in descriptors:
                os.close(one)
        ended = await self._settle(run.started)
        del self._runs[uid, name]
        run.ended.set()
        self._tell(ended)

    async def _settle(self, started: Started) -> Ended:
        """Whose launcher has ended. If it wrote nothing, it was killed: the container is, too."""
        uid, name = started.pod_uid, started.container
        record = await anyio.to_thread.run_sync(self._store.record, uid, name)
        with suppress(HostError, OSError):  # it has ended all the same; `remove` says what stays
            await self._remove_group(self._group(uid, name))
        if record is None or "ended_at" not in record:
            record = self._unknown(started)
            with suppress(HostError):
                self._store.write_record(uid, name, record)
        return _ended(uid, name, record)

    def _unknown(self, started: Started) -> Record:
        now = self._now()
        return Record(
            boot=self._boot, attempt=started.attempt, started_at=started.at or now, ended_at=now, code=None, signal=0,
            oom_killed=False,
        )  # fmt: skip

    # ---- ending --------------------------------------------------------------------------------------------

    def _signal(self, started: Started, number: signal.Signals) -> None:
        """Send its command a signal, if that is still the process that it was."""
        with suppress(ProcessLookupError):
            opened = os.pidfd_open(started.pid)
            try:
                if started.pid in self._hierarchy.processes(self._group(started.pod_uid, started.container)):
                    signal.pidfd_send_signal(opened, number)
            finally:
                os.close(opened)

    async def _kill(self, groups: list[str]) -> None:
        """Until none of their processes is left. Only what begins meanwhile is kept from forking: a process
        that may not, and still runs, complains in the container's log."""
        if not groups or not await anyio.to_thread.run_sync(launcher.kill_all, groups):
            return
        await anyio.to_thread.run_sync(launcher.forbid_new, groups)
        while True:
            if not await anyio.to_thread.run_sync(launcher.kill_all, groups):
                return
            await anyio.sleep(_AGAIN_S)

    async def _remove_group(self, group: str) -> None:
        """Kill what is in it, and remove it."""
        error: HostError | None = None
        with anyio.move_on_after(ENDS_WITHIN_S):
            while True:
                await self._kill(self._directories(group))
                try:
                    await anyio.to_thread.run_sync(self._hierarchy.remove, group)
                except HostError as raised:  # the kernel lets go of the last process a moment after its end
                    error = raised
                    await anyio.sleep(_AGAIN_S)
                else:
                    return
        raise error or HostError(f"the processes of the cgroup {group} do not end")

    # ---- what earlier agents made --------------------------------------------------------------------------

    async def _find(self) -> None:
        known, notes = set(self._store.uids()), list[str]()
        for child in sorted(self._hierarchy.children(self._pods_group)):
            uid = child.removeprefix(_POD)
            if child == uid or uid not in known:
                await self._remove_group(f"{self._pods_group}/{child}")
                notes.append(f"nothing is known of the cgroup {self._pods_group}/{child}: what ran in it was killed")
        found: list[Found] = []
        for uid in sorted(known):
            pod = self._store.read_pod(uid)
            if pod is None:
                await self._remove_group(self._group(uid))
                await anyio.to_thread.run_sync(self._store.remove_pod, uid)
                notes.append(f"nothing is known of the pod in {self._store.pod(uid)}: it was killed and removed")
                continue
            self._known[uid] = set(self._store.containers(uid))
            await anyio.to_thread.run_sync(self._hierarchy.make, self._group(uid))
            runs = [await self._find_run(uid, name) for name in sorted(self._known[uid])]
            found.append(Found(pod, tuple(run for run in runs if run is not None)))
        self.found, self.notes = tuple(found), tuple(notes)

    async def _find_run(self, uid: str, name: str) -> Started | Ended | None:
        """The last run of a container; None: it never ran."""
        record = self._store.record(uid, name)
        group = self._group(uid, name)
        if record is None:
            await self._remove_group(group)
            return None
        started = Started(
            uid, name, record.get("attempt", 0), record.get("main", [0])[0], record.get("started_at", 0.0)
        )
        opened: list[int] = []
        if "ended_at" not in record and record.get("boot") == self._boot:
            opened = [one for who in ("launcher", "main") if (one := _open(record.get(who))) is not None]
        if opened and "main" in record:
            self._watch(started, *opened)
            return started
        for one in opened:  # a launcher that has started nothing yet
            signal.pidfd_send_signal(one, signal.SIGKILL)
            os.close(one)
        return await self._settle(started)

    # ---- names ---------------------------------------------------------------------------------------------

    def _checked(self, uid: str) -> str:
        if uid not in self._known:
            raise HostError(f"no pod {uid!r} has been made here")
        return uid

    def _group(self, uid: str, container: str = "") -> str:
        pod = f"{self._pods_group}/{_POD}{uid}"
        return f"{pod}/{_CONTAINER}{container}" if container else pod

    def _directories(self, group: str) -> list[str]:
        return [str(one) for one in self._hierarchy.directories(group)]


def _open(process: list[int] | None) -> int | None:
    """A process that is still the one that is meant; None: it has ended."""
    if process is None:
        return None
    pid, began = process
    try:
        opened = os.pidfd_open(pid)
        if launcher.began(pid) == began:
            return opened
        os.close(opened)
    except ProcessLookupError:
        pass
    return None


def _reap(watched: int) -> None:
    """Of a process that has ended, if it is a child of ours."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, watched, os.WEXITED | os.WNOHANG)


def _ended(uid: str, name: str, record: Record) -> Ended:
    return Ended(
        uid,
        name,
        record.get("attempt", 0),
        record.get("code"),
        record.get("signal", 0),
        record.get("oom_killed", False),
        record.get("started_at", 0.0),
        record.get("ended_at", 0.0),
    )
