"""`podyard demo --running`: the story in a stack that runs already, as often as one likes."""

from pathlib import Path

from podyard.bus import BusSettings, connect
from podyard.cli.demo.evidence import gather
from podyard.cli.demo.theatre import options
from podyard.cli.lab.lab import running_lab
from tests.e2e.stage import READY_S, cli


async def test_the_story_can_be_told_twice_in_one_stack(tmp_path: Path) -> None:
    with options(str(tmp_path)) as planned:
        async with running_lab(planned) as lab:
            await lab.until_ready(READY_S)
            first = await cli("demo", "--running", url=lab.url)
            assert first.code == 0, first.out + first.err
            async with (
                connect(BusSettings(servers=(lab.url,), name="test", service="test")) as bus,
                gather(bus) as seen,
            ):
                before = {pod.uid for pod in seen.view.pods.values()}
            second = await cli("demo", "--running", url=lab.url)
            assert second.code == 0, second.out + second.err
            async with (
                connect(BusSettings(servers=(lab.url,), name="test", service="test")) as bus,
                gather(bus) as seen,
            ):
                assert before.isdisjoint(pod.uid for pod in seen.view.pods.values())


async def test_a_stack_of_its_own_and_a_running_one_exclude_each_other() -> None:
    done = await cli("demo", "--running", "--keep")
    assert done.code == 2
    assert "--running is for one that runs already" in done.err
