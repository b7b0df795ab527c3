"""`/debug/queue`, `/debug/cache` and SIGUSR2 of queue, scheduler and binder that run together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import structlog

from podyard.binder.service import SERVICE as BINDER
from podyard.bus import Bus
from podyard.proto import subjects
from podyard.queue.service import SERVICE as QUEUE
from podyard.runtime.service import Service
from podyard.scheduler.service import SERVICE as SCHEDULER
from podyard.shell import comparison, debugging
from tests.support.buses import ConnectBus
from tests.support.cluster import Cluster
from tests.support.services import make_service, running
from tests.support.waiting import eventually

SERVICES = {"queue": QUEUE, "scheduler": SCHEDULER, "binder": BINDER}


@asynccontextmanager
async def plane(connect_bus: ConnectBus, *names: str) -> AsyncIterator[dict[str, Service[Any]]]:
    """These services, once all of them serve."""
    async with anyio.create_task_group() as tasks:
        made = {name: make_service(SERVICES[name], await connect_bus(name)) for name in names}
        async with anyio.create_task_group() as inner:
            for service in made.values():
                service.pages.made_here()
                inner.start_soon(service.definition.main, service)
            for service in made.values():
                await eventually("it holds something", lambda service=service: holds(service))
            yield made
            inner.cancel_scope.cancel()
        tasks.cancel_scope.cancel()


def shows_of(service: Service[Any]) -> Any:
    """What shows it."""
    made: Any = service.pages._pages[debugging.QUEUE].make  # pyright: ignore[reportPrivateUsage]
    return made.__self__


def source_of(service: Service[Any]) -> Any:
    """What it shows."""
    return shows_of(service)._source


def holds(service: Service[Any]) -> bool:
    """Whether it has listed, and leads if it is one that leads."""
    if debugging.QUEUE not in service.pages.paths(secure=True):
        return False
    source = source_of(service)
    return source.view is not None and source.view.position > 0 and source.queue(1) is not None


async def page(service: Service[Any], path: str) -> dict[str, Any]:
    answer = await service.pages.answer(path, secure=True)
    assert answer is not None, path
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body)


async def cluster_of(bus: Bus) -> Cluster:
    cluster = Cluster(bus)
    await cluster.node("n1", cpu="4")
    await cluster.node("n2", cpu="4")
    return cluster


async def test_each_shows_nodes_and_agrees_with_the_stream(connect_bus: ConnectBus, bus: Bus) -> None:
    cluster = await cluster_of(bus)
    await cluster.pod("small", cpu="1")
    await cluster.pod("large", cpu="40")
    async with plane(connect_bus, *SERVICES) as services:
        await eventually("small is bound", lambda: is_bound(bus, "small"))
        for name, service in services.items():
            shown = await page(service, debugging.CACHE)
            assert shown["comparison"]["differs"] is False, (name, shown["comparison"])
            assert [node["name"] for node in shown["nodes"]] == ["n1", "n2"]
            [node] = [node for node in shown["nodes"] if node["pods"]]
            assert (node["requested"]["cpu"], node["podCount"]) == ("1000m", 1)
            assert (node["pods"][0]["name"], node["deleted"]) == ("small", False)
            assert node["allocatable"]["cpu"] in ("4", "4000m")


async def is_bound(bus: Bus, name: str) -> bool:
    found = await bus.get("CLUSTER", subjects.binding("default", name, f"uid-{name}"))
    return found is not None


async def test_the_queue_shows_what_waits_where(connect_bus: ConnectBus, bus: Bus) -> None:
    cluster = await cluster_of(bus)
    await cluster.pod("large", cpu="40")
    await cluster.pod("gated", schedulingGates=[{"name": "g"}])
    async with plane(connect_bus, *SERVICES) as services:

        async def parked() -> bool:
            return (await page(services["queue"], debugging.QUEUE))["counts"]["unschedulable"] == 1

        await eventually("large is parked", parked)
        shown = await page(services["queue"], debugging.QUEUE)
        pods = {pod["name"]: pod for pod in shown["pods"]}
        assert pods["large"]["pool"] == "unschedulable"
        assert pods["large"]["unschedulablePlugins"] == ["NodeResourcesFit"]
        assert pods["large"]["attempts"] == 1
        assert pods["large"]["since"] > 0
        assert pods["gated"]["gatingPlugin"] == "SchedulingGates"


async def test_without_a_binder_the_scheduler_shows_what_it_assumes(connect_bus: ConnectBus, bus: Bus) -> None:
    cluster = await cluster_of(bus)
    await cluster.pod("a", cpu="1")
    async with plane(connect_bus, "queue", "scheduler") as services:
        scheduler = services["scheduler"]

        async def assumed() -> bool:
            return (await page(scheduler, debugging.QUEUE))["counts"] == {"binderAsked": 1}

        await eventually("a is assumed", assumed)
        [row] = (await page(scheduler, debugging.QUEUE))["pods"]
        assert (row["name"], row["where"], row["node"] in ("n1", "n2")) == ("a", "binderAsked", True)
        shown = await page(scheduler, debugging.CACHE)
        assert shown["comparison"]["differs"] is False, "what is assumed is not redundant"
        [pod] = [pod for node in shown["nodes"] for pod in node["pods"]]
        assert pod["own"] == "assumed, binderAsked"


async def test_what_the_cache_has_wrong_is_told(connect_bus: ConnectBus, bus: Bus) -> None:
    """The table is made wrong by hand: nothing in the product does that."""
    await cluster_of(bus)
    async with plane(connect_bus, "binder") as services:
        binder = services["binder"]
        source_of(binder).term[0].world.table.remove_node("n2")
        shown = await page(binder, debugging.CACHE)
        assert shown["comparison"]["differs"] is True
        assert shown["comparison"]["nodes"]["missed"] == {"count": 1, "first": ["n2"]}


async def test_the_comparison_waits_for_a_moment_at_which_both_have_read_the_same(
    connect_bus: ConnectBus, bus: Bus
) -> None:
    """Pods come all the time: what was written between two looks is no difference."""
    cluster = await cluster_of(bus)
    async with plane(connect_bus, "queue") as services, anyio.create_task_group() as tasks:

        async def write() -> None:
            for number in range(10_000):
                await cluster.pod(f"p{number}", cpu="1")
                await anyio.sleep(0.002)

        tasks.start_soon(write)
        for _ in range(5):
            shown = await page(services["queue"], debugging.CACHE)
            assert shown["comparison"]["differs"] is False, shown["comparison"]
        tasks.cancel_scope.cancel()


async def test_a_standby_says_that_it_holds_nothing(connect_bus: ConnectBus, bus: Bus) -> None:
    async with plane(connect_bus, "binder"):
        standby = make_service(BINDER, await connect_bus("standby"), instance="standby")
        standby.pages.made_here()
        async with running(standby):
            await eventually("it has begun", lambda: standby.pages.paths(secure=True))
            shown = await page(standby, debugging.CACHE)
            assert shown == {
                "comparison": {"notCompared": "it reads nothing now: it stands by, or is starting"},
                "holds": debugging.HOLDS_NOTHING,
            }


async def test_a_comparison_that_takes_long_goes_on_and_is_seen_by_who_asks_again(
    connect_bus: ConnectBus, bus: Bus, monkeypatch: Any
) -> None:
    monkeypatch.setattr(debugging, "ANSWER_WITHIN_S", 0.05)
    may_go_on = anyio.Event()
    slowly = comparison.differences
    begun: list[int] = []

    async def slow(*given: Any, **more: Any) -> Any:
        begun.append(1)
        await may_go_on.wait()
        return await slowly(*given, **more)

    monkeypatch.setattr(comparison, "differences", slow)
    await cluster_of(bus)
    async with plane(connect_bus, "binder") as services:
        first = await page(services["binder"], debugging.CACHE)
        assert first["comparison"]["advice"] == "ask again"
        may_go_on.set()
        shows = shows_of(services["binder"])
        await eventually("it is over", lambda: shows._since is None)  # pyright: ignore[reportPrivateUsage]
        assert "differs" in (await page(services["binder"], debugging.CACHE))["comparison"]
        assert begun == [1], "who asks again begins none of his own"
        await page(services["binder"], debugging.CACHE)
        assert begun == [1, 1], "what has been seen is not told again"


async def test_all_who_ask_at_once_see_one_comparison(connect_bus: ConnectBus, bus: Bus) -> None:
    await cluster_of(bus)
    async with plane(connect_bus, "binder") as services:
        shown: list[dict[str, Any]] = []

        async def ask() -> None:
            shown.append((await page(services["binder"], debugging.CACHE))["comparison"])

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert shown == [shown[0]] * 5
        assert shown[0]["differs"] is False


async def test_the_dump_compares_and_writes_cache_and_queue(connect_bus: ConnectBus, bus: Bus) -> None:
    cluster = await cluster_of(bus)
    for number in range(debugging.PODS_LOGGED + 5):
        await cluster.pod(f"p{number:03}", cpu="40")
    with structlog.testing.capture_logs() as logged:
        async with plane(connect_bus, "queue") as services:
            await services["queue"].dumps._write_all(structlog.get_logger())  # pyright: ignore[reportPrivateUsage]
    told = {line["event"]: line for line in logged}
    assert told["the cache is what the stream says"]["differs"] is False
    assert [node["name"] for node in told["dump of cached nodes"]["nodes"]] == ["n1", "n2"]
    queue = told["dump of the queue"]["queue"]
    assert queue["counts"]["activeQ"] == debugging.PODS_LOGGED + 5
    assert (len(queue["pods"]), queue["leftOut"]) == (debugging.PODS_LOGGED, 5)
