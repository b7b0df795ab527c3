"""`podyard security`: keys, certificates and permissions on NATS."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from podyard.cli.options import JsonOutputOption, NatsOption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from podyard.cli.security.directory import Owner
    from podyard.cli.security.rotating import Told

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
    owner: Annotated[str, Parameter(show_default=False)] = "",
    kube_api: Annotated[str, Parameter(show_default=False)] = "",
    if_missing: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Make keys, a certificate authority with certificates, and configurations of NATS servers. Nothing is
    overwritten, no secret is shown.

    ```
    podyard security init ~/podyard-security
    podyard security init ~/podyard-security --agent rack1=node-1,node-2 --agent rack2=node-3
    podyard security init ~/podyard-security --cluster nats-1,nats-2,nats-3 --host nats.example.org
    podyard security init /srv/podyard-security --if-missing --owner 10001
    ```

    :param directory: Where; it must not hold a file.
    :param host: Further names or addresses of the NATS servers, by commas; may be repeated. Known anyway:
        localhost and `nats`.
    :param cluster: Names of the servers of a cluster, by commas: a configuration for each.
    :param agent: NAME=NODE,NODE: an agent that may report about these nodes only; may be repeated.
    :param owner: UID or UID:GID: the user whose the identities' files become, as services run as another
        one. Needs root.
    :param kube_api: URL by which people reach the Kubernetes API; default: https://localhost:6443.
    :param if_missing: Where keys were made already, add identities that there were not yet, change nothing
        else, and succeed.
    """
    from pathlib import Path

    from podyard.cli.security import directory as directories
    from podyard.cli.security import identities, kube_files

    known = identities.all_identities(_agents(agent))
    belongs_to = _owner(owner) if owner else None
    made = Path(directory).expanduser()
    url = kube_api or kube_files.URL
    if if_missing and directories.is_made(made):
        told = _completed(made, url)
        if belongs_to is not None:
            directories.check_owner(made, belongs_to)
        print(told)
        return 0
    hosts = [name for text in host for name in _words(text)]
    directories.create(made, known, hosts=hosts, cluster=_words(cluster), owner=belongs_to, kube_url=url)
    print(f"made {made}: {len(known)} identities, a certificate authority, configurations of NATS in {made}/server")
    print(f"keep {made}/ca/ca.key elsewhere: nothing that runs needs it")
    print(f"\npodyard up --security {made}")
    return 0


def _completed(made: "Path", kube_url: str) -> str:
    """What became of a directory that was made before."""
    from podyard.cli.errors import InputError
    from podyard.cli.security import completing, rotation

    try:
        added = completing.complete(made, lambda: rotation.authority(made), kube_url)
    except InputError as error:
        names = ", ".join(identity.name for identity in completing.missing(made))
        return f"{made} has no keys for {names} ({error.message}): podyard security complete {made} --ca-key FILE"
    return f"{made} has keys; added: {', '.join(added)}" if added else f"{made} has keys: nothing was changed"


@security.command
def complete(
    directory: str,
    /,
    *,
    ca_key: Annotated[str, Parameter(show_default=False)] = "",
    kube_api: Annotated[str, Parameter(show_default=False)] = "",
    nats: NatsOption = None,
) -> int:
    """Add identities that a directory has not got, as an older release made it. What is there stays.

    ```
    podyard security complete ~/podyard-security
    podyard security complete ~/podyard-security --ca-key /media/key/ca.key --nats nats://nats-1:4222
    ```

    :param directory: As `podyard security init` made it.
    :param ca_key: The authority's key, if it is kept elsewhere than in DIRECTORY/ca/ca.key.
    :param kube_api: URL by which people reach the Kubernetes API; default: https://localhost:6443.
    :param nats: Every server that runs, by commas: it is told to let them in. Without it servers do so from
        their next start on.
    """
    import os
    from pathlib import Path

    from podyard.cli import session
    from podyard.cli.security import completing, kube_files, rotation
    from podyard.cli.security import directory as directories
    from podyard.cli.security.servers import Servers

    place = directories.checked(Path(directory).expanduser())
    added = completing.complete(place, lambda: rotation.authority(place, ca_key), kube_api or kube_files.URL)
    print(f"added: {', '.join(added)}" if added else "nothing was missing")
    if nats:
        _run(Servers(place, session.servers(nats, os.environ)).reload)
        print("the servers let them in")
    elif added:
        print(f"servers let them in from their next start on, with the files of {place}/server; or name them: --nats")
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

    _run(work)
    print("the streams and their mirrors are there")
    return 0


@security.command
def rotate(
    directory: str,
    /,
    *names: str,
    all_: Annotated[bool, Parameter(name="--all", negative="")] = False,
    ca: Annotated[bool, Parameter(name="--ca", negative="")] = False,
    now: Annotated[bool, Parameter(negative="")] = False,
    ca_key: Annotated[str, Parameter(show_default=False)] = "",
    output: JsonOutputOption = "text",
    nats: NatsOption = None,
) -> int:
    """Replace keys and certificates, one identity after the other, while everything runs. What was
    interrupted goes on with the same command.

    Servers let both keys in; the identity's files are replaced, and whoever uses them connects anew with them
    within seconds; servers let the old key in no more.

    ```
    podyard security rotate ~/podyard-security api
    podyard security rotate ~/podyard-security --all --nats nats://nats-1:4222,nats://nats-2:4222
    podyard security rotate ~/podyard-security person --now
    podyard security rotate ~/podyard-security --ca
    ```

    :param directory: As `podyard security init` made it.
    :param names: Identities; `server`: the certificate of the NATS servers.
    :param all_: All of them.
    :param ca: The certificate authority, and all of them: everybody believes the old one and the new one, all
        certificates are made anew, then nobody believes the old one. Its key is not needed.
    :param now: Who uses an old key is not waited for, but cut off: it is in wrong hands.
    :param ca_key: The authority's key, if it is kept elsewhere than in DIRECTORY/ca/ca.key.
    """
    import os
    from pathlib import Path

    from podyard.cli import session
    from podyard.cli.errors import InputError
    from podyard.cli.security import directory as directories
    from podyard.cli.security import rotation, succession
    from podyard.cli.security.rotating import Rotating, alone, wanted
    from podyard.cli.security.servers import Servers

    if [bool(names), all_, ca].count(True) != 1:
        raise InputError("whose keys?", "name identities, or say --all, or --ca")
    if ca and ca_key:
        raise InputError("--ca and --ca-key were given", "--ca makes a new authority, and does not need the old key")
    place = directories.checked(Path(directory).expanduser())
    if not ca:
        succession.refuse_while_under_way(place)
    chosen = wanted(place, names, everybody=all_)
    servers = Servers(place, session.servers(nats, os.environ))
    shown = _Steps(output)
    rotating = Rotating(place, servers, lambda: rotation.authority(place, ca_key), shown.tell)

    within_s = 0.0 if now else TAKEN_WITHIN_S

    async def work() -> None:
        if ca:
            await rotating.replace_authority(within_s=within_s)
        for name in chosen:
            await rotating.rotate(name, within_s=within_s)

    try:
        with alone(place):
            _run(work)
    finally:
        shown.end()
    return 0


class _Steps:
    """Steps as they are done; as JSON all of them at the end, however it ends."""

    def __init__(self, output: str) -> None:
        self._json = output == "json"
        self._steps: list[object] = []

    def tell(self, step: "Told") -> None:
        """A step is done."""
        self._steps.append(step)
        if not self._json:
            print(f"{step.identity:<12}  {step.step:<8}  {step.text}", flush=True)

    def end(self) -> None:
        """No more will come."""
        import msgspec

        if self._json:
            print(msgspec.json.format(msgspec.json.encode({"steps": self._steps}), indent=2).decode())


def _run(work: "Callable[[], Awaitable[None]]") -> None:
    import anyio

    from podyard.bus.errors import BusError
    from podyard.cli import session
    from podyard.cli.errors import CliError

    try:
        anyio.run(work)
    except BusError as error:
        raise CliError(str(error)) from error
    except BaseExceptionGroup as group:
        raise session.first(group) from group


@security.command
def env(directory: str, identity: str, /) -> int:
    """Print the variables by which a command or service becomes an identity: paths of its files, no secret.

    ```
    eval "$(podyard security env ~/podyard-security person)"
    podyard security env ~/podyard-security agent-rack1 > rack1.env
    ```

    :param directory: As `podyard security init` made it.
    :param identity: api, kube_api, queue, scheduler, binder, node_agent, descheduler, workloads, person,
        bridge, or agent-NAME.
    """
    import shlex
    from pathlib import Path

    from podyard.cli.security import directory as directories

    place = Path(directory).expanduser()
    for name, value in directories.environment(place, directories.named(identity, directories.agents(place))).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


TAKEN_WITHIN_S: Final = 30.0
"""Seconds that who uses an old key gets to take the new one: its files are looked at every 2 s."""

WITHIN_S: Final = 60.0
"""Seconds that the servers get to answer `bootstrap`: a cluster elects its leaders first."""


NOBODY: Final = 2**32 - 1
"""No user or group has this number: it says `leave it` to the kernel."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _owner(text: str) -> "Owner":
    from podyard.cli.errors import InputError
    from podyard.cli.security.directory import Owner

    uid, _, gid = text.partition(":")
    try:
        found = Owner(int(uid), int(gid or uid))
    except ValueError:
        found = Owner(-1, -1)
    if not all(0 <= number < NOBODY for number in found):
        raise InputError(f"--owner {text}: expected numbers, UID or UID:GID", "for example 10001")
    return found


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
