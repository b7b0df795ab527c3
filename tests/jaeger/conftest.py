"""A real Jaeger for all tests, and the demo's story told into it once."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from podyard.bench.programs.go_programs import NoProgramError
from podyard.bus import BusSettings, connect
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import Evidence, gather
from podyard.cli.demo.story import Story
from podyard.cli.demo.theatre import options
from podyard.cli.jaeger.api import Jaeger
from podyard.cli.lab.lab import running_lab
from tests.e2e.stage import READY_S
from tests.jaeger.binary import find
from tests.jaeger.server import JaegerServer, running
from tests.support.holding import held

PATIENCE_S = 60.0


@pytest.fixture(scope="session")
def program() -> Path:
    """Without it the tests fail, with the reason."""
    try:
        return find()
    except NoProgramError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def jaeger_server(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JaegerServer]:
    """The Jaeger that the story is told into."""
    with running(program, tmp_path_factory.mktemp("jaeger") / "jaeger.log") as server:
        yield server


@pytest.fixture(scope="session")
def jaeger(jaeger_server: JaegerServer) -> Jaeger:
    """Its query API."""
    return Jaeger(jaeger_server.url)


def exporting(server: JaegerServer, share: float = 1.0) -> dict[str, str]:
    """The standard variables for this Jaeger. `share`: of the traces in which nothing bad happens."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": server.otlp,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": str(share),
    }


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def told(jaeger_server: JaegerServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Evidence]:
    """The demo's whole story, every trace sampled; what the services stored in it."""
    with options(str(tmp_path_factory.mktemp("lab"))) as planned:
        environment = planned.environment | exporting(jaeger_server)
        wanted = msgspec.structs.replace(planned, environment=environment)
        async with held(running_lab(wanted)) as lab:
            await lab.until_ready(READY_S)
            settings = BusSettings(servers=(lab.url,), name="test", service="test")
            async with held(connect(settings)) as bus, held(gather(bus)) as seen:
                story = Story(Actions(bus), seen, PATIENCE_S)
                async with held(story.sensors()):
                    for step in story.steps():
                        await step.act()
                        await step.see()
                yield seen
