"""A rotation from its first step to its last: files by `rotation`, running servers by `servers`. Each step is
told when it is done; who is interrupted begins again where the folder says."""

import fcntl
import os
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import msgspec
from cryptography import x509

from podyard.bus.settings import BusSettings
from podyard.cli.errors import CliError, InputError
from podyard.cli.security import directory, identities, kube_files, rotation, succession
from podyard.cli.security.authority import Authority
from podyard.cli.security.rotation import SERVER, Rotation
from podyard.cli.security.servers import LOOK_EVERY_S, Servers, believes, certificate_of, lets_in
from podyard.cli.security.succession import AUTHORITY


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A step that is done."""

    identity: str
    step: str
    """made, known, replaced, used, gone, and of kube_api renewed; of the authority made, believed, gone."""
    text: str


Tell = Callable[[Told], None]

LOOKED_FOR_S: Final = 20.0
"""Seconds that servers get to go by new files: those of a lab see them within one ..."""
READ_AGAIN_S: Final = 2.0
"""... and after which they are told once more to read them."""

BACK_WITHIN_S: Final = 5.0
"""Seconds that who has left with the old key gets to come back with the new one, before it is told."""


def wanted(place: Path, names: Sequence[str], *, everybody: bool) -> list[str]:
    """Whose keys are replaced, in order: what was begun first, the operator, who steers it, at the end, then
    the servers' own.

    :raises InputError: for a name that the directory does not have
    """
    there = directory.names(place)
    unknown = [name for name in names if name not in (*there, SERVER)]
    if unknown:
        raise InputError(f"{place} has no identity {unknown[0]!r}", f"there are {', '.join((*there, SERVER))}")
    chosen = (*there, SERVER) if everybody else names
    begun = rotation.under_way(place)
    late = (identities.OPERATOR, SERVER)
    return sorted(dict.fromkeys(chosen), key=lambda name: (name in late, name == SERVER, name not in begun))


@contextmanager
def alone(place: Path) -> Generator[None]:
    """Nobody else rotates keys of this directory meanwhile.

    :raises InputError: if somebody does
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another rotation of {place} runs", "wait for its end") from None
        yield
    finally:
        os.close(descriptor)


class Rotating:
    """Rotations of one directory."""

    def __init__(self, place: Path, servers: Servers, signer: Callable[[], Authority], tell: Tell) -> None:
        """:param signer: the authority, when something is to be signed"""
        self._place = place
        self._servers = servers
        self._signer = signer
        self._tell = tell

    async def rotate(self, name: str, *, within_s: float) -> None:
        """Replace one key, or go on with what was begun.

        :param within_s: seconds that who uses the old key gets to take the new one; 0: they are cut off
        :raises CliError: if a step cannot be done; the same call goes on with it
        """
        if name == SERVER:
            await self._server_certificate()
            return
        place = self._place
        now = rotation.load(place, name)
        if now is None:
            now = rotation.begin(place, name, self._signer())
            self._told(name, "made", f"a new key and certificate, in {place}/{rotation.FOLDER}/{name}")
        if now.step == "made":
            rotation.let_both_in(place, now)
            await self._servers.reload()
            await self._until_let_in(now, "new", True)
            now = rotation.done(place, now, "known")
            self._told(name, "known", "servers let the old key in and the new one")
        if now.step == "known":
            rotation.replace_files(place, now)
            now = rotation.done(place, now, "replaced")
            self._told(name, "replaced", f"the new files are in {place}/identities/{name}")
        await self._until_used(now, within_s)
        rotation.let_only_new_in(place, now)
        await self._servers.reload()
        await self._until_let_in(now, "old", False)
        if name == kube_files.KUBE_API:
            kube_files.renew(place, self._signer())
            self._told(name, "renewed", f"people come with the kubeconfig in {place}/identities/{identities.PERSON}")
        rotation.finish(place, now)
        self._told(name, "gone", "servers refuse the old key; it is removed")

    async def replace_authority(self, *, within_s: float) -> None:
        """Replace the authority, all keys and certificates with it, or go on with what was begun: everybody
        believes both, then everything is made anew, then nobody believes the old one.

        :param within_s: as of `rotate`
        :raises CliError: if a step cannot be done; the same call goes on with it
        """
        place = self._place
        now = succession.load(place)
        if now is None:
            now = succession.begin(place)
            self._told(AUTHORITY, "made", f"a new authority, in {succession.folder(place)}")
        if now.step == "made":
            succession.believe_both(place)
            await self._servers.reload()
            await self._until_believed("new", True)
            succession.done(place, "believed")
            self._told(AUTHORITY, "believed", "servers believe the old authority and the new one")
        renewing = Rotating(place, self._servers, lambda: succession.signer(place), self._tell)
        for name in wanted(place, directory.names(place), everybody=False):
            while not succession.is_renewed(place, name):  # what was begun before still ends with the old one
                await renewing.rotate(name, within_s=within_s)
        await renewing.rotate(SERVER, within_s=within_s)
        succession.believe_only_new(place)
        await self._servers.reload()
        await self._until_believed("old", False)
        succession.finish(place)
        self._told(AUTHORITY, "gone", "servers refuse the old authority; keep ca/ca.key elsewhere")

    async def _until_believed(self, which: rotation.Which, expected: bool) -> None:
        said = "does not believe the new authority" if expected else "still believes the old authority"
        await self._until(lambda at: succession.login(self._place, which, at), believes, expected, said)

    async def _until_let_in(self, now: Rotation, which: rotation.Which, expected: bool) -> None:
        does = "does not let the new key in" if expected else "still lets the old key in"
        await self._until(
            lambda at: rotation.login(self._place, now, which, at), lets_in, expected, f"{does} of {now.name}"
        )

    async def _until(
        self,
        login_at: Callable[[str], BusSettings],
        ask: Callable[[BusSettings], Awaitable[bool | None]],
        expected: bool,
        otherwise: str,
    ) -> None:
        """Ask each server, until it answers what is expected.

        :raises CliError: with `otherwise`, naming the server that does not in time
        """
        for address in self._servers.addresses:
            login = login_at(address)

            async def does(login: BusSettings = login) -> bool:
                return await ask(login) is expected

            if not await self._shows_by_the_files(does):
                raise CliError(
                    f"{login.shown_servers} {otherwise}",
                    f"give it the files of {self._place}/server, then run the same command again: it goes on",
                )

    async def _until_used(self, now: Rotation, within_s: float) -> None:
        """Nobody is to be cut off who can have the new key."""

        before = set(await self._servers.connected(now.old_key))

        async def let_go() -> bool:
            return not await self._servers.connected(now.old_key)

        async def back() -> bool:
            return before <= set(await self._servers.connected(now.new_key))

        if within_s and not await _within(within_s, let_go):
            late = await self._servers.connected(now.old_key)
            raise CliError(
                f"the old key of {now.name} is still used by {', '.join(late)}",
                f"give them the new files of {self._place}/identities/{now.name}, then run the same command again: "
                "it goes on; with --now they are cut off",
            )
        if within_s:
            await _within(BACK_WITHIN_S, back)
        users = await self._servers.connected(now.new_key)
        self._told(now.name, "used", f"the new key is used by {', '.join(users) or 'nobody yet'}")

    async def _server_certificate(self) -> None:
        """The servers' own: they have one at a time, and clients believe the authority that signed both."""
        made = rotation.new_server_certificate(self._place, self._signer())
        self._told(SERVER, "replaced", f"the new files are in {self._place}/server")
        await self._servers.reload()
        person = directory.named(identities.PERSON)
        fresh = x509.load_pem_x509_certificate(made)
        for address in self._servers.addresses:
            login = directory.bus_settings(self._place, person, (address,))

            async def shown(login: BusSettings = login) -> bool:
                return x509.load_der_x509_certificate(await certificate_of(login)) == fresh

            if not await self._shows_by_the_files(shown):
                raise CliError(
                    f"{login.shown_servers} shows its old certificate",
                    f"give it the files of {self._place}/server, then run the same command again",
                )
        self._told(SERVER, "used", "servers show the new certificate")

    async def _shows_by_the_files(self, asked: Callable[[], Awaitable[bool]]) -> bool:
        """Whether a server goes by the new files in time; until then all servers read them again and again. A
        server that follows its files may read them while it is told to: then the older content may be the
        last that it applies (seen on nats-server 2.15.1).
        """
        read_at = anyio.current_time()

        async def does() -> bool:
            nonlocal read_at
            if await asked():
                return True
            if anyio.current_time() - read_at >= READ_AGAIN_S:
                await self._servers.reload()
                read_at = anyio.current_time()
            return False

        return await _within(LOOKED_FOR_S, does)

    def _told(self, identity: str, step: str, text: str) -> None:
        self._tell(Told(identity=identity, step=step, text=text))


async def _within(limit_s: float, asked: Callable[[], Awaitable[bool]]) -> bool:
    """Ask a server again and again; False if it did not come true in time."""
    with anyio.move_on_after(limit_s):
        while not await asked():  # noqa: ASYNC110  # another process: there is nothing to wait on
            await anyio.sleep(LOOK_EVERY_S)
        return True
    return False
