"""Requests that come twice, late or again long after; answers that do not come; a storm of updates; a rolling
restart under load."""

import asyncio
import signal
from typing import Final

import pytest

from tests.faults.message_rules import Drop, DropAnswers, Late, Repeat, Rule
from tests.faults.stage import Stage

pytestmark = pytest.mark.timeout(200)
whole = pytest.mark.whole_faults
SCHEDULERS: Final = ("scheduler-1", "scheduler-2")
REPEATED: Final = ("svc.queue.pop", "svc.queue.done", "svc.queue.preempting", "svc.binder.bind")
REPLAYED_AFTER_S: Final = (0.0, 1.0, 5.0)
"""At once, while its attempts are open, and when they are long over."""


async def test_requests_that_come_again_and_again_have_one_effect(stage: Stage):
    """Pops, results, decisions, and what people ask for; also to a binder and a queue that have never heard
    of them."""
    async with stage.trial("repeats") as load:
        rules = [
            stage.proxy(instance).rule(Repeat(subject, REPLAYED_AFTER_S))
            for instance in SCHEDULERS
            for subject in REPEATED
        ]
        rules += [stage.proxy("people").rule(Repeat("svc.objects.*", REPLAYED_AFTER_S))]
        leaders = [await stage.leading(service) for service in ("binder", "queue")]
        async with load.flowing():
            await stage.bound(20)
            for leader in leaders:
                stage.process(leader).kill()
                assert await stage.process(leader).ended() == -signal.SIGKILL
                await stage.process(leader).start()
            await stage.bound(10)
        for subject in (*REPEATED[:2], REPEATED[3], "svc.objects.*"):
            assert sum(rule.happened for rule in rules if rule.pattern == subject) > 3, subject


@whole
async def test_commits_and_lease_renewals_that_come_again_are_refused(stage: Stage):
    """The server sees each write three times; twice its batch id or its compare-and-set is refused, and
    nobody waits."""
    async with stage.trial("repeated-writes") as load:
        rules = [
            stage.proxy(await stage.leading(service)).rule(Repeat(pattern, (0.0, 2.0)))
            for service, pattern in (("binder", "placement.>"), ("binder", "leases.*"), ("queue", "leases.*"))
        ]
        rules += [stage.proxy(one).rule(Repeat("cluster.>", (0.0, 1.0))) for one in ("api-1", "node_agent-1")]
        await load.run()
        assert all(rule.happened > 3 for rule in rules), [str(rule) for rule in rules]


@whole
async def test_requests_that_are_overtaken(stage: Stage):
    async with stage.trial("overtaken") as load:
        rules = [
            stage.proxy(instance).rule(Late(subject, delay_s, times=12))
            for instance in SCHEDULERS
            for subject, delay_s in (("svc.queue.done", 0.5), ("svc.binder.bind", 0.3), ("svc.queue.heartbeat", 1.0))
        ]
        await load.run()
        assert sum(rule.happened for rule in rules) > 12


@whole
async def test_answers_that_do_not_come_are_asked_for_again(stage: Stage):
    async with stage.trial("no-answers") as load:
        lost = [
            (one, subject, 2)
            for one in SCHEDULERS
            for subject in ("svc.queue.pop", "svc.queue.done", "svc.binder.bind")
        ]
        lost += [(await stage.leading(service), "leases.*", 1) for service in ("binder", "queue")]
        lost.append(("people", "svc.objects.apply", 1))
        rules = [
            stage.proxy(one).rule(DropAnswers(f"answer to {subject}", times=times)) for one, subject, times in lost
        ]
        await load.run()
        async with load.flowing():  # the one scheduler may have bound nothing so far, while the other asked again
            for rule in rules:
                await rule.done(rule.times or 0, 30)


async def test_commits_that_are_lost_or_whose_acknowledgement_is_lost_are_settled(stage: Stage):
    """The binder moves the fence and learns from that what became of its batch; never is a pod bound again,
    never is one forgotten."""
    async with stage.trial("no-acks") as load:
        leader = await stage.leading("binder")
        rules: list[Rule] = [stage.proxy(leader).rule(Drop("placement.fence", times=1))]
        rules.append(stage.proxy(leader).rule(DropAnswers("answer to placement.>", times=2)))
        rules.append(stage.proxy("api-1").rule(DropAnswers("answer to cluster.>", times=2)))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            for rule in rules:
                await rule.done(rule.times or 0, 30)


@whole
async def test_the_queue_changes_hands_in_the_middle_of_a_storm_of_node_updates(stage: Stage):
    """Each update may wake pods; what the old leader has not judged, the new one does."""
    async with stage.trial("storm") as load:
        await load.run(pods=80, over_s=2)
        leader = await stage.leading("queue")
        async with load.flowing(storm=True):
            while load.touched < 200:
                await stage.recorder.changed()
            touched = load.touched
            stage.process(leader).kill()
            await stage.leading("queue", other_than=leader)
            assert load.touched > touched + 100
        assert await stage.process(leader).ended() == -signal.SIGKILL


@whole
@pytest.mark.timeout(240)
async def test_a_rolling_restart_under_load_loses_nothing(stage: Stage):
    async with stage.trial("rolling") as load, load.flowing():
        for process in stage.processes.values():
            await stage.bound(5)
            starts = process.starts
            process.terminate()
            assert await process.ended() == 0
            await process.start()
            await process.ready()
            assert process.starts == starts + 1


@whole
async def test_slow_and_torn_connections(stage: Stage):
    """Latency for some, resets in the middle of messages for others."""
    async with stage.trial("torn") as load:
        leader = await stage.leading("binder")
        for instance in SCHEDULERS:
            stage.proxy(instance).up.latency_s = stage.proxy(instance).down.latency_s = 0.05
        async with load.flowing():
            for instance in (leader, await stage.leading("queue"), "scheduler-1", "api-1", "node_agent-1"):
                proxy = stage.proxy(instance)
                made = proxy.made
                proxy.up.bytes_left = 20_000
                async with asyncio.timeout(20):
                    while proxy.made == made:
                        await stage.recorder.changed()
                await stage.bound(2)
