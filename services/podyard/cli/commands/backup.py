"""`podyard backup`: all streams as files."""

from typing import TYPE_CHECKING

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus


def backup(directory: str, /, *, output: JsonOutputOption = "text", nats: NatsOption = None) -> int:
    """Copy all streams into a new directory, while the services work; each is copied as it was at one moment.

    Who leads is not kept. On a secured installation run it with
    `eval "$(podyard security env DIRECTORY admin)"`.

    ```
    podyard backup /srv/backups/monday
    podyard backup /srv/backups/monday -o json
    ```

    :param directory: Where; it must not exist, or be empty.
    """
    from pathlib import Path

    from podyard.cli import backing_up, session
    from podyard.cli.render import backup as render
    from podyard.cli.render import plain

    place = Path(directory).expanduser()

    async def work(bus: "Bus") -> int:
        with render.shown() as shown:
            manifest = await backing_up.back_up(bus, place, shown)
        if output == "json":
            print(plain.dump(manifest, "json"), end="")
        else:
            print("\n".join(render.kept_lines(manifest.streams)))
            print(f"\npodyard restore {place}")
        return 0

    return session.run(nats, work, service="admin")
