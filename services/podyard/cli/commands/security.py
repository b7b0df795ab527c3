"""`podyard security`: keys, certificates and permissions on NATS."""

from typing import Annotated, Final

from cyclopts import App, Parameter

from podyard.cli.options import NatsOption

ABOUT: Final = """Make and use the trust boundary: an nkey and a certificate for every service, person and node agent,
and NATS servers that tell them apart.

```
podyard security init ~/podyard-security
podyard up --security ~/podyard-security
```
"""

security = App(name="security", help=ABOUT)


@security.command
def init(
    directory: str,
    /,
    *,
    host: Annotated[tuple[str, ...], Parameter(name="--host", negative="", show_default=False)] = (),
    cluster: Annotated[str, Parameter(show_default=False)] = "",
    agent: Annotated[tuple[str, ...], Parameter(name="--agent", negative="", show_default=False)] = (),
) -> int:
    """Make keys, a certificate authority with certificates, and configurations of NATS servers. Nothing is
    overwritten, no secret is shown.

    ```
    podyard security init ~/podyard-security
    podyard security init ~/podyard-security --agent rack1=node-1,node-2 --agent rack2=node-3
    podyard security init ~/podyard-security --cluster nats-1,nats-2,nats-3 --host nats.example.org
    ```

    :param directory: Where; it must not exist.
    :param host: Further name or address of the NATS servers; may be repeated. Known anyway: localhost and
        `nats`.
    :param cluster: Names of the servers of a cluster, by commas: a configuration for each.
    :param agent: NAME=NODE,NODE: an agent that may report about these nodes only; may be repeated.
    """
    from pathlib import Path

    from podyard.cli.security import directory as directories
    from podyard.cli.security import identities

    known = identities.all_identities(_agents(agent))
    made = Path(directory).expanduser()
    directories.create(made, known, hosts=host, cluster=_words(cluster))
    print(f"made {made}: {len(known)} identities, a certificate authority, configurations of NATS in {made}/server")
    print(f"keep {made}/ca/ca.key elsewhere: nothing that runs needs it")
    print(f"\npodyard up --security {made}")
    return 0


@security.command
def bootstrap(directory: str, /, *, replicas: int = 1, nats: NatsOption = None) -> int:
    """Make the streams and their mirrors, as the administrators; `podyard up --security` does it by itself.
    Repeating it changes nothing.

    ``` podyard security bootstrap ~/podyard-security --nats nats://nats:4222 podyard security bootstrap
    ~/podyard-security --nats nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222 --replicas 3 ```

    :param directory: As `podyard security init` made it.
    :param replicas: Copies of each stream: 1 on one server, 3 in a cluster.
    """
    import os
    from pathlib import Path

    import anyio

    from podyard.bus.errors import BusError
    from podyard.bus.settings import without_secrets
    from podyard.cli import session
    from podyard.cli.errors import CliError, InputError
    from podyard.cli.security.mirrors import bootstrap as make

    if not 1 <= replicas <= 5:
        raise InputError(f"--replicas {replicas}: must be from 1 to 5")
    servers = session.servers(nats, os.environ)
    place = Path(directory).expanduser()

    async def work() -> None:
        with anyio.move_on_after(WITHIN_S) as limit:
            await make(place, servers, replicas=replicas)
        if limit.cancelled_caught:
            advice = "are they running with the configuration of this directory?"
            raise CliError(
                f"the NATS servers at {without_secrets(', '.join(servers))} were not ready within {WITHIN_S:g} s",
                advice,
            )

    try:
        anyio.run(work)
    except BusError as error:
        raise CliError(str(error)) from error
    except BaseExceptionGroup as group:
        raise session.first(group) from group
    print("the streams and their mirrors are there")
    return 0


@security.command
def env(directory: str, identity: str, /) -> int:
    """Print the variables by which a command or service becomes an identity: paths of its files, no secret.

    ```
    eval "$(podyard security env ~/podyard-security person)"
    podyard security env ~/podyard-security agent-rack1 > rack1.env
    ```

    :param directory: As `podyard security init` made it.
    :param identity: api, queue, scheduler, binder, node_agent, descheduler, workloads, person, bridge, or
        agent-NAME.
    """
    import shlex
    from pathlib import Path

    from podyard.cli.security import directory as directories

    place = Path(directory).expanduser()
    for name, value in directories.environment(place, directories.named(identity, directories.agents(place))).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


WITHIN_S: Final = 60.0
"""Seconds that the servers get to answer `bootstrap`: a cluster elects its leaders first."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _agents(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    from podyard.cli.errors import InputError

    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, _, listed = text.partition("=")
        nodes = _words(listed)
        if not name.replace("-", "").isalnum() or not nodes or name in found:
            raise InputError(
                f"--agent {text}: expected NAME=NODE,NODE, each name once", "for example rack1=node-1,node-2"
            )
        found[name] = nodes
    return found
