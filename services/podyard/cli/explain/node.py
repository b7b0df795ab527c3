"""Collecting what the bus holds about a node and the pods that wait. Shell: listings and requests, no
judgement."""

from typing import Final

from podyard.bus.connection import Bus
from podyard.cli import stored_objects
from podyard.cli.errors import CliError
from podyard.cli.explain import gather
from podyard.proto import subjects
from podyard.proto.queue_api import QueueListRequest
from podyard.telling import node_story
from podyard.telling.node_story import NodeStory

OUTSIDE: Final = 256
"""Pods that nobody schedules, as many as the queue names in one answer."""


async def story(bus: Bus, name: str) -> NodeStory:
    """What is on it, how full it is, and why waiting pods do not go there.

    :raises CliError: if there is no such node
    """
    objects = await stored_objects.read(bus, (subjects.NODES, subjects.PODS))
    found = objects.view.nodes.get(name)
    if found is None:
        raise CliError(f'no node "{name}"', "`podyard get nodes` lists those there are")
    waiting = node_story.waiting_pods(objects.view)[: node_story.MOST_LOOKED_AT]
    attempts = await gather.last_attempts(bus, waiting)
    queue = await gather.queue_says(bus, QueueListRequest(limit=OUTSIDE))
    return node_story.story(objects.view, found, attempts, queue)
