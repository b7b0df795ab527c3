"""The scheduler as a service."""

import gc
import time

import anyio

from podyard.cluster.informer import Informer, base_subjects
from podyard.cluster.view import ClusterView
from podyard.configuration import files
from podyard.extenders import clients_of, described
from podyard.framework.event_registry import followed_by
from podyard.proto import subjects
from podyard.runtime.service import Service, ServiceDefinition
from podyard.scheduler.bind_link import BindLink
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.engine import Engine
from podyard.scheduler.extender_link import ExtenderLink
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.preemption_link import PreemptionLink
from podyard.scheduler.queue_link import QueueLink
from podyard.scheduler.record_link import RecordLink
from podyard.scheduler.settings import SchedulerSettings

COLLECT_EVERY = (100_000, 50, 50)
"""Thresholds of the garbage collector. What a cycle makes is gone with it, and little of what is kept is cyclic: with Python's own
thresholds (700, 10, 10) every second cycle pays for a collection."""

VIEW_CHECK = "view"


async def main(service: Service[SchedulerSettings]) -> None:
    """Follow the cluster, then schedule for ever."""
    gc.set_threshold(*COLLECT_EVERY)
    settings, bus, health, log = service.settings, service.bus, service.health, service.log
    configuration = files.of(service.process)
    for unused in configuration.unused():
        log.warning("a setting of the scheduler configuration has no effect", field=unused.field, reason=unused.reason)
    profiles = files.profiles(configuration, service.process)
    watched = followed_by(profiles.values(), extenders=bool(configuration.extenders))
    view = ClusterView()
    instruments = Instruments(service.metrics)
    extenders = described(configuration.extenders)
    core = Scheduler(profiles, view, service.session, stopwatch=time.perf_counter, extenders=extenders)
    engine = Engine(
        core,
        now=service.clock.now,
        spans=service.spans,
        instruments=instruments,
        slice_s=settings.slice_s,
        most_under_way=settings.most_under_way,
    )
    health.set_ready(VIEW_CHECK, False, "listing the cluster")

    def on_contact(fresh: bool) -> None:
        health.set_ready(VIEW_CHECK, fresh, "" if fresh else "nothing heard of the cluster for 2 s")

    informer = Informer(
        bus,
        view,
        base_subjects(*map(subjects.objects, watched)),
        service=service.name,
        on_changes=engine.on_changes,
        on_listed=engine.on_listed,
        on_contact=on_contact,
    )
    digests = {name: profile.digest for name, profile in profiles.items()}
    queue = QueueLink(
        bus,
        engine,
        digests,
        settings,
        session=service.session,
        health=health,
        instruments=instruments,
        log=log,
    )
    binder = BindLink(bus, engine, health=health, instruments=instruments, log=log)
    records = RecordLink(bus, engine, instruments=instruments, log=log)
    preemptions = PreemptionLink(
        bus,
        engine,
        queue,
        view,
        now=service.clock.now,
        spans=service.spans,
        instruments=instruments,
        log=log,
    )
    async with clients_of(configuration.extenders) as clients, anyio.create_task_group() as tasks:
        tasks.start_soon(informer.run)
        await informer.synced()
        gc.collect()
        gc.freeze()  # what was listed lives long: full collections need not walk it
        tasks.start_soon(engine.work, informer)
        tasks.start_soon(queue.send_results)
        tasks.start_soon(queue.heartbeat)
        tasks.start_soon(binder.run, settings.bind_requests)
        tasks.start_soon(records.run)
        tasks.start_soon(preemptions.run)
        tasks.start_soon(ExtenderLink(engine, clients, core.nodes).run)
        tasks.start_soon(queue.pop)


SERVICE = ServiceDefinition(
    name="scheduler",
    settings_type=SchedulerSettings,
    main=main,
    check=files.check,
    description="Finds a node for every pod that the queue hands out, and has the binder bind it",
)
