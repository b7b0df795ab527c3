"""`podyard demo --running`: the story in a stack that runs already, as often as one likes."""

from tests.e2e.stage import WITHIN_S, Stand, cli


async def test_the_story_can_be_told_twice_in_one_stack(here: Stand) -> None:
    before: set[str] = set()

    def others() -> set[str]:
        uids = {pod.uid for pod in here.seen.view.pods.values()}
        return uids if before.isdisjoint(uids) else set()

    for _ in range(2):
        told = await cli("demo", "--running", url=here.lab.url)
        assert told.code == 0, told.out + told.err
        before = await here.seen.until("pods of this telling alone", others, WITHIN_S)


async def test_a_stack_of_its_own_and_a_running_one_exclude_each_other() -> None:
    done = await cli("demo", "--running", "--keep")
    assert done.code == 2
    assert "--running is for one that runs already" in done.err
