"""One replay on a lab of its own: the services and a NATS server, from their start to the figures."""

import os

from podyard.bench import meters
from podyard.bench.replay import result
from podyard.bench.replay.plan import Plan
from podyard.bench.replay.playing import Player, Tell
from podyard.bench.replay.result import Replay
from podyard.bench.scheduler_perf import stacks
from podyard.bus import connect


async def replay(plan: Plan, config: str, data: str, tell: Tell) -> Replay:
    """Start a stack, replay, and measure.

    :param config: file of a KubeSchedulerConfiguration; "": the default one
    :param data: directory that keeps logs and streams; "": a temporary one
    :raises CliError: it does not come to an end, or an object is refused
    """
    load_before = os.getloadavg()[0]
    options = stacks.Options(tracing=0.0, data=data)
    async with stacks.started(options, config) as there, connect(there.bus) as bus:
        player = Player(bus, plan, tell)
        await player.prepare()
        before = meters.cpu_seconds(there.processes)
        seen = await player.play()
        used = meters.difference(meters.cpu_seconds(there.processes), before)
    return result.of(plan, seen, config=config, cpu=used, load_before=load_before)
