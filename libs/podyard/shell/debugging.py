"""`/debug/queue`, `/debug/cache` and SIGUSR2: what waits in a service, what it counts on which node, and
whether that is what the stream says.

Source: kube-scheduler v1.36.2, pkg/scheduler/backend/cache/debugger (CacheDumper, CacheComparer).
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

import anyio
import msgspec
import structlog

from podyard.bus.connection import Bus
from podyard.cluster.dumping import NodesDump
from podyard.runtime.dumps import SIGNAL, Dumps
from podyard.runtime.pages import Pages
from podyard.runtime.service import Service
from podyard.shell import comparison
from podyard.shell.comparison import Holder, NotComparedError
from podyard.shell.set_aside import SetAside

QUEUE: Final = "/debug/queue"
CACHE: Final = "/debug/cache"
NODES_SHOWN: Final = 500
PODS_SHOWN: Final = 1000
PODS_OF_A_NODE_SHOWN: Final = 50
NODES_LOGGED: Final = 20
PODS_OF_A_NODE_LOGGED: Final = 5
PODS_LOGGED: Final = 50
ANSWER_WITHIN_S: Final = 4.0
"""A page that takes longer is not waited for (`runtime.pages`): it says that the comparison goes on."""
KEPT_S: Final = 60.0
"""How long what was found waits for who asks again."""
HOLDS_NOTHING: Final = "it holds nothing now: it stands by, or is starting"


def debugging_of(service: Service[Any], source: "Source", aside: SetAside) -> "Debugging":
    """Of a service, to be run beside its work."""
    return Debugging(
        source,
        bus=service.bus,
        pages=service.pages,
        dumps=service.dumps,
        log=service.log,
        now=service.clock.now,
        service=service.name,
        aside=aside,
    )


class Source(Holder, Protocol):
    """A service, as far as it is shown."""

    def queue(self, most: int) -> object | None:
        """Pods that wait in it, at most so many; None: it has none to show, since another one leads."""
        ...

    def nodes(self, most: int, most_pods: int) -> NodesDump | None:
        """Nodes as it counts them, at most so many, with at most so many pods each."""
        ...


class Debugging:
    """Of one service. Owned by its event loop."""

    def __init__(
        self,
        source: Source,
        *,
        bus: Bus,
        pages: Pages,
        dumps: Dumps,
        log: structlog.stdlib.BoundLogger,
        now: Callable[[], float],
        service: str,
        aside: SetAside | None = None,
    ) -> None:
        """
        :param aside: what the service's own reading sets aside
        """
        self._source = source
        self._bus = bus
        self._pages = pages
        self._dumps = dumps
        self._log = log
        self._now = now
        self._service = service
        self._aside = aside
        self._wanted = anyio.Event()
        self._done = anyio.Event()
        self._since: float | None = None
        """When the comparison began that is under way."""
        self._found: dict[str, Any] = {}
        """What the last one found."""
        self._fresh_until = 0.0
        """Until when that is told to who asks, unless somebody has seen it."""

    async def run(self) -> NoReturn:
        """Show it, and compare when somebody asks, for ever."""
        self._pages.add(QUEUE, self._queue, secure_only=True)
        self._pages.add(CACHE, self._cache, secure_only=True)
        self._dumps.add("cache and queue", self._dump)
        try:
            while True:
                await self._wanted.wait()
                self._found, self._fresh_until = await self._compare(), self._now() + KEPT_S
                self._wanted, self._since = anyio.Event(), None
                self._done.set()
        finally:
            self._pages.remove(QUEUE)
            self._pages.remove(CACHE)
            self._dumps.remove("cache and queue")

    # ---- pages ---------------------------------------------------------------------------------------------

    def _queue(self) -> object:
        found = self._source.queue(PODS_SHOWN)
        return {"holds": HOLDS_NOTHING} if found is None else found

    async def _cache(self) -> object:
        """The comparison comes first, so that both are of nearly one moment."""
        compared = await self._comparison()
        found = self._source.nodes(NODES_SHOWN, PODS_OF_A_NODE_SHOWN)
        shown = {"holds": HOLDS_NOTHING} if found is None else msgspec.to_builtins(found)
        return {"comparison": compared, **shown}

    async def _comparison(self) -> dict[str, Any]:
        """A new one, or that of somebody who asks at the same time, or a fresh one that nobody has seen
        yet."""
        if self._now() > self._fresh_until:
            self._begin()
            done = self._done
            with anyio.move_on_after(ANSWER_WITHIN_S):
                await done.wait()
            if not done.is_set():
                return {"underWayS": round(self._now() - (self._since or self._now()), 1), "advice": "ask again"}
        self._fresh_until = 0.0
        return self._found

    def _begin(self) -> None:
        if self._since is None:
            self._since, self._done = self._now(), anyio.Event()
            self._wanted.set()

    async def _compare(self) -> dict[str, Any]:
        began_at = self._now()
        try:
            found = await comparison.differences(self._bus, self._source, service=self._service, aside=self._aside)
        except NotComparedError as error:
            return {"notCompared": str(error)}
        except Exception as error:  # whatever it raises: the service goes on
            self._log.error("the comparison failed", exc_info=error)
            return {"notCompared": f"it failed: {type(error).__name__}; the log says more"}
        seconds = round(self._now() - began_at, 3)
        return {"differs": found.differs, "seconds": seconds, **msgspec.to_builtins(found)}

    # ---- the signal ----------------------------------------------------------------------------------------

    async def _dump(self) -> None:
        """Compare, then dump, as the reference."""
        self._begin()
        await self._done.wait()
        compared, self._fresh_until = self._found, 0.0
        if "notCompared" in compared:
            self._log.info("the cache was not compared with the stream", reason=compared["notCompared"])
        elif compared["differs"]:
            self._log.warning("cache mismatch", **compared)
        else:
            self._log.info("the cache is what the stream says", **compared)
        nodes = self._source.nodes(NODES_LOGGED, PODS_OF_A_NODE_LOGGED)
        if nodes is None:
            self._log.info("there is nothing to dump", signal=SIGNAL.name, reason=HOLDS_NOTHING)
        else:
            self._log.info("dump of cached nodes", **msgspec.to_builtins(nodes))
        queue = self._source.queue(PODS_LOGGED)
        if queue is not None:
            self._log.info("dump of the queue", queue=msgspec.to_builtins(queue))
