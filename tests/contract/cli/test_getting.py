"""What `get` reads and follows on a bus."""

import anyio
import pytest

from podyard.bus import Bus
from podyard.cli import getting
from podyard.cli.errors import CliError
from tests.support import objects, stored

LIMIT_S = 5.0


async def printed(capsys: pytest.CaptureFixture[str], lines: list[str], wanted: int) -> None:
    """Collect what is printed until there are so many lines."""
    with anyio.fail_after(LIMIT_S):
        while len(lines) < wanted:
            await anyio.sleep(0.01)
            lines += capsys.readouterr().out.splitlines()


async def test_get_prints_what_is_stored_and_says_what_is_not_there(bus: Bus, capsys: pytest.CaptureFixture[str]):
    await bus.publish(stored.version("pods", objects.pod("a")))
    assert await getting.once(bus, getting.parse("pods", (), "default", "", "name")) == 0
    assert capsys.readouterr().out == "pod/a\n"
    with pytest.raises(CliError, match="not found in namespace default: pods/zzz"):
        await getting.once(bus, getting.parse("pods", ("zzz",), "default", "", "name"))


async def test_get_that_follows_prints_the_listing_then_each_change_of_what_was_asked_for(
    bus: Bus, capsys: pytest.CaptureFixture[str]
):
    await bus.publish(stored.version("pods", objects.pod("a", labels={"app": "web"})))
    query = getting.parse("pods", (), "default", "app=web", "name")
    lines: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting.follow, bus, query)
        await printed(capsys, lines, 1)
        await bus.publish(stored.version("pods", objects.pod("b", labels={"app": "db"})))
        await bus.publish(stored.version("pods", objects.pod("c", namespace="other", labels={"app": "web"})))
        await bus.publish(stored.version("pods", objects.pod("d", labels={"app": "web"})))
        await printed(capsys, lines, 2)
        await bus.publish(stored.marker("pods", objects.pod("a", labels={"app": "web"})))
        await printed(capsys, lines, 3)
        tasks.cancel_scope.cancel()
    assert lines == ["pod/a", "pod/d", "pod/a deleted"]


async def test_values_of_secrets_are_not_shown_where_the_api_does_not_say_them(
    bus: Bus, capsys: pytest.CaptureFixture[str]
):
    """No api answers here; what follows never asks."""
    metadata = {"name": "db", "namespace": "default", "uid": "u1"}
    await bus.publish(stored.version("secrets", {"metadata": metadata, "data": {"password": "sealed:v1:0:text"}}))
    query = getting.parse("secret/db", (), "default", "", "json")
    assert await getting.once(bus, query) == 0
    shown = capsys.readouterr()
    assert '"password": "<encrypted>"' in shown.out
    assert shown.err.startswith("warning: values of secrets are not shown: ")
    lines: list[str] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(getting.follow, bus, query)
        await printed(capsys, lines, 1)
        tasks.cancel_scope.cancel()
    assert "<encrypted>" in lines[0]
    assert "sealed" not in shown.out + lines[0]
