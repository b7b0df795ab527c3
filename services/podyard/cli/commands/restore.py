"""`podyard restore`: the streams of a backup, on a server that has none."""

from typing import TYPE_CHECKING

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from podyard.bus.connection import Bus


def restore(directory: str, /, *, replicas: int = 1, output: JsonOutputOption = "text", nats: NatsOption = None) -> int:
    """Make the streams of a backup anew, with the sequences of then. Only on a server that holds no cluster:
    stop the services before, start them afterwards.

    What was bound after the backup was taken is not known then, though it may run: docs/backup.md.
    On a secured installation run it with `eval "$(podyard security env DIRECTORY admin)"`, and then
    `podyard security bootstrap`, which makes the mirrors.

    ```
    podyard restore /srv/backups/monday
    podyard restore /srv/backups/monday --replicas 3 --nats nats://nats-1:4222
    ```

    :param directory: As `podyard backup` made it.
    :param replicas: Copies of each stream: 1 on one server, 3 in a cluster.
    """
    from pathlib import Path

    from podyard.cli import backing_up, session
    from podyard.cli.errors import InputError
    from podyard.cli.render import backup as render
    from podyard.cli.render import plain, tables

    if not 1 <= replicas <= 5:
        raise InputError(f"--replicas {replicas}: must be from 1 to 5")
    place = Path(directory).expanduser()

    async def work(bus: "Bus") -> int:
        with render.shown() as shown:
            made = await backing_up.give_back(bus, place, replicas, shown)
        if output == "json":
            print(plain.dump(made, "json"), end="")
        else:
            rows = [(one.name, str(one.messages), str(one.last), str(one.goes_on_at)) for one in made]
            print("\n".join(tables.plain_lines(render.RESTORED_HEADERS, rows)))
            print("\nStart the services now.")
        return 0

    return session.run(nats, work, service="admin")
