"""A real Prometheus that scrapes a lab at work, over TLS: the demo's story, and what that does not have."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from podyard.cli.demo.story import Story
from podyard.cli.demo.theatre import options
from tests.e2e.stage import Stand, stand_with
from tests.prometheus import acts, scraping
from tests.prometheus.binary import NoPrometheusError, Programs, find
from tests.prometheus.server import PrometheusServer, running
from tests.support.holding import held

PATIENCE_S = 60.0


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Without them the tests fail, with the reason."""
    try:
        return find()
    except NoPrometheusError as error:
        pytest.fail(str(error), pytrace=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def prometheus(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PrometheusServer]:
    """One that has seen everything that the dashboard is about."""
    folder = tmp_path_factory.mktemp("lab")
    with options(str(folder)) as planned:
        scraped = scraping.over_tls(planned, folder)
        async with held(stand_with(scraped.options)) as here:
            with running(programs.prometheus, scraped.config, folder) as server:
                await _play(here)
                await acts.all_of_them(here, server)
                await acts.seen_by(server)
                yield server


async def _play(here: Stand) -> None:
    story = Story(here.do, here.seen, PATIENCE_S)
    async with held(story.sensors()):
        for step in story.steps():
            await step.act()
            await step.see()
