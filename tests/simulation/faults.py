"""What goes wrong, when and for how long: chosen by the seed."""

from collections.abc import Callable, Sequence
from random import Random

from podyard.proto import streams
from tests.memory_nats import MemoryServer
from tests.simulation.clock import Clock
from tests.simulation.process import Process

FAULTS = 20
CLOCKS_SET = 5
"""How often a wall clock is set, for that many faults."""
ENDS = 4
"""How many processes are to end in order, for that many faults."""
SET_BY_S = (-3600.0, -3600.0, -90.0, -11.0, -0.7, 0.7, 11.0, 90.0, 3600.0, 3600.0)
"""Forth and back, among it further than any duration that a service waits for."""
FIRST_S = 3.0
LAST_S = 60.0
RESTART_S = (0.2, 14.0)


class Faults:
    """Plans the faults of one seed. Each is told to the history."""

    def __init__(
        self,
        clock: Clock,
        server: MemoryServer,
        processes: Sequence[Process],
        tell: Callable[[str], None],
        lose_cluster: Callable[[], None],
    ) -> None:
        """
        :param tell: notes a line in the history
        :param lose_cluster: makes CLUSTER again
        """
        self._clock = clock
        self._server = server
        self._processes = processes
        self._tell = tell
        self._lose_cluster = lose_cluster
        self._stale: dict[str, float] = {}
        """Until when reads may be stale, and by how much."""
        self.count = 0
        self.kinds: dict[str, Callable[[Process, Random], None]] = {
            "kill": self.kill,
            "crash": self.crash,
            "pause": self.pause,
            "partition up": self.partition_up,
            "partition down": self.partition_down,
            "partition": self.partition,
            "cut": self.cut,
            "loss": self.loss,
            "repeats": self.repeats,
            "slow": self.slow,
            "stale reads": self.stale_reads,
            "no room": self.no_room,
            "lost consumer": self.lost_consumer,
            "lagging consumers": self.lagging_consumers,
            "stream made again": self.stream_made_again,
        }

    def plan(self, count: int = FAULTS, *, clocks: bool = True) -> None:
        """`count` faults of random kinds at random times on random processes.

        :param clocks: whether wall clocks are set, too
        """
        random = self._clock.random
        for _ in range(count):
            kind, process = random.choice(sorted(self.kinds)), random.choice(self._processes)
            self._clock.later(random.uniform(FIRST_S, LAST_S), lambda k=kind, p=process: self.inject(k, p))
        if clocks:
            self._plan_clocks(count * CLOCKS_SET // FAULTS)

    def _plan_clocks(self, times: int) -> None:
        """Chosen by a source of its own: what else a seed plays does not depend on it."""
        random = Random(f"clocks {self._clock.seed}")
        for _ in range(times):
            process, by_s = random.choice(self._processes), random.choice(SET_BY_S)
            at_s = random.uniform(FIRST_S, LAST_S)
            self._clock.later(at_s, lambda p=process, s=by_s: self.set_clock(p, s))
            if random.random() < 0.5:  # somebody notices
                self._clock.later(at_s + random.uniform(0.5, 20.0), lambda p=process, s=-by_s: self.set_clock(p, s))

    def plan_ends(self, count: int = FAULTS) -> None:
        """Processes that are to end in order, as for an upgrade; chosen by a source of their own, too."""
        random = Random(f"ends {self._clock.seed}")
        for _ in range(count * ENDS // FAULTS):
            process, at_s = random.choice(self._processes), random.uniform(FIRST_S, LAST_S)
            self._clock.later(at_s, lambda p=process: self.end(p))

    def end(self, process: Process) -> None:
        self.count += 1
        process.end()

    def inject(self, kind: str, process: Process) -> None:
        """One fault, now."""
        self.count += 1
        self._tell(f"FAULT {kind} of {process.instance}")
        self.kinds[kind](process, self._clock.random)

    def set_clock(self, process: Process, by_s: float) -> None:
        """The wall clock of a process' machine is set."""
        self.count += 1
        self._tell(f"FAULT the wall clock of {process.instance} is set by {by_s:+g} s")
        process.ahead_s += by_s

    def watch_over(self, process: Process) -> None:
        """Start again what has crashed, as whoever runs services does."""
        if not process.alive:
            delay_s = self._clock.random.uniform(*RESTART_S)
            self._clock.later(delay_s, process.start)
            self._clock.later(delay_s + 0.5, lambda: self.watch_over(process))
        else:
            self._clock.later(0.5, lambda: self.watch_over(process))

    # ---- kinds

    def kill(self, process: Process, random: Random) -> None:
        process.kill()

    def crash(self, process: Process, random: Random) -> None:
        """Between two effects, soon."""
        process.crash_at = process.effects + random.randint(1, 60)

    def pause(self, process: Process, random: Random) -> None:
        """SIGSTOP, often for longer than the lease lives."""
        loop = process.loop
        if loop is None or loop.dead or loop.paused:
            return
        loop.pause()
        self._end(random.choice((0.5, 3, 9, 13, 20)), "pause", process, lambda: loop.dead or loop.resume())

    def partition_up(self, process: Process, random: Random) -> None:
        self._hold(process, random, up=True)

    def partition_down(self, process: Process, random: Random) -> None:
        self._hold(process, random, down=True)

    def partition(self, process: Process, random: Random) -> None:
        self._hold(process, random, up=True, down=True)

    def _hold(self, process: Process, random: Random, *, up: bool = False, down: bool = False) -> None:
        network = process.network
        network.up_held |= up
        network.down_held |= down

        def heal() -> None:
            network.up_held = network.down_held = False
            if process.way is not None:
                process.way.release()

        self._end(random.choice((0.3, 2, 6, 12)), "partition", process, heal)

    def cut(self, process: Process, random: Random) -> None:
        process.cut()
        self._end(random.choice((0.1, 1, 4, 12)), "cut", process, process.restore)

    def loss(self, process: Process, random: Random) -> None:
        process.network.loss = random.choice((0.02, 0.1, 0.5))
        self._end(random.uniform(1, 8), "loss", process, lambda: setattr(process.network, "loss", 0.0))

    def repeats(self, process: Process, random: Random) -> None:
        process.network.repeat = 0.7
        self._end(random.uniform(5, 20), "repeats", process, lambda: setattr(process.network, "repeat", 0.0))

    def slow(self, process: Process, random: Random) -> None:
        process.network.slow_s = random.choice((0.05, 0.3, 1.5))
        self._end(random.uniform(2, 10), "slow", process, lambda: setattr(process.network, "slow_s", 0.0))

    def stale_reads(self, process: Process, random: Random) -> None:
        """A replica that lags answers some reads, of everybody."""
        lag_s = random.choice((0.1, 1.0, 5.0))
        self._server.stale_read_s = lambda subject: lag_s if random.random() < 0.5 else 0.0
        self._end(random.uniform(3, 15), "stale reads", process, self._fresh)

    def _fresh(self) -> None:
        self._server.stale_read_s = lambda subject: 0.0

    def no_room(self, process: Process, random: Random) -> None:
        stream = self._server.streams[random.choice((streams.CLUSTER, streams.LEASES, streams.DECISIONS)).name]
        stream.full = True
        self._end(random.uniform(0.5, 4), "no room", process, lambda: setattr(stream, "full", False))

    def lost_consumer(self, process: Process, random: Random) -> None:
        """The server forgets the state of all consumers, as after a restart."""
        self._server.forget_consumers()

    def lagging_consumers(self, process: Process, random: Random) -> None:
        """For some seconds consumers hand out at their heartbeats only: of what is written again meanwhile,
        the last version.
        """
        for number in range(random.choice((3, 10, 40))):
            self._clock.later(0.2 * number, self._server.stall_consumers)

    def stream_made_again(self, process: Process, random: Random) -> None:
        """Leases, records, or the state of the cluster."""
        name = random.choice((streams.LEASES, streams.DECISIONS, streams.REQUEUES, streams.CLUSTER)).name
        if name == streams.CLUSTER.name:
            self._lose_cluster()
        else:
            self._tell(f"{name} is made again")
            self._server.remake(name)

    def _end(self, delay_s: float, kind: str, process: Process, end: Callable[[], object]) -> None:
        def over() -> None:
            self._tell(f"end of {kind} of {process.instance}")
            end()

        self._clock.later(delay_s, over)
