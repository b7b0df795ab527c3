"""What `podyard backup` and `podyard restore` do, and what they refuse."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from podyard.bus import backup, restore
from podyard.bus.archive import ArchiveError
from podyard.bus.backup import BACKED_UP, FORMAT, MANIFEST, KeptStream, Manifest, NeverStillError
from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cli.errors import CliError, InputError, listed
from podyard.cli.render.backup import Shown
from podyard.proto import codec, streams
from podyard.proto.codec import MessageError
from podyard.runtime import clock

AS_ADMIN: Final = 'the streams are the administrator\'s: eval "$(podyard security env DIRECTORY admin)"'
JETSTREAM: Final = "$JS.API"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A stream that is there again. `goes_on_at` is the sequence that its next message gets."""

    name: str
    messages: int
    last: int
    goes_on_at: int


async def back_up(bus: Bus, directory: Path, shown: Shown) -> Manifest:
    """Copy all streams but LEASES into a new directory.

    :raises InputError: the directory has something in it
    :raises CliError: it was not done; nothing is left behind
    """
    _only_the_streams_themselves(bus)
    try:
        _make(directory)
        try:
            kept = [await backup.back_up(bus, spec, directory, shown.of(spec.name)) for spec in BACKED_UP]
            manifest = Manifest(format=FORMAT, at=clock.now(), streams=tuple(kept))
            unnamed = directory / f"{MANIFEST}.part"
            unnamed.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
            unnamed.rename(directory / MANIFEST)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
    except NeverStillError as error:
        raise CliError(f"{error}; nothing was kept", "try again when less is going on") from error
    except OSError as error:
        raise CliError(f"{directory}: {error.strerror or error}; nothing was kept") from error
    return manifest


def _make(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} is there already, and not empty", "name a new directory for each backup")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def read(directory: Path) -> Manifest:
    """What a backup holds, once every file is known to be what it was.

    :raises InputError: it is no backup, or not whole
    """
    try:
        manifest = codec.decode(Manifest, (directory / MANIFEST).read_bytes())
    except OSError as error:
        raise InputError(
            f"{directory / MANIFEST}: {error.strerror}", "a directory without it is no backup, or was not finished"
        ) from error
    except MessageError as error:
        raise InputError(f"{directory / MANIFEST}: {error}") from error
    if manifest.format != FORMAT:
        raise InputError(f"{directory / MANIFEST}: format {manifest.format}; this release reads {FORMAT}")
    faults = _faults(manifest.streams, directory)
    if faults:
        raise InputError(f"{directory} is not whole:\n       {listed(faults)}", "take another backup")
    return manifest


def _faults(kept: Sequence[KeptStream], directory: Path) -> list[str]:
    wanted = {spec.name for spec in BACKED_UP}
    names = [one.name for one in kept]
    faults = [f"{name}: it is not in it" for name in sorted(wanted - {*names})]
    faults += [f"{name}: no such stream, or twice" for name in names if name not in wanted or names.count(name) > 1]
    for one in kept:
        path = directory / one.file
        if one.file != f"{one.name}.gz" or not path.is_file():
            faults.append(f"{one.name}: there is no file {one.name}.gz")
        elif backup.digest(path) != one.sha256:
            faults.append(f"{one.file}: it is not what it was when the backup was taken (SHA-256)")
    return faults


async def give_back(bus: Bus, directory: Path, replicas: int, shown: Shown) -> list[Restored]:
    """Make all streams of a backup anew.

    :raises InputError: it is no backup, or not whole; nothing was done
    :raises CliError: the server holds something; or it was not done, and what was made is removed again
    """
    _only_the_streams_themselves(bus)
    manifest = read(directory)
    await _emptied(bus)
    by_name = {spec.name: spec for spec in streams.ALL_STREAMS}
    made: list[Restored] = []
    # CLUSTER last: a service that waits for it finds the records there.
    for kept in sorted(manifest.streams, key=lambda one: one.name == streams.CLUSTER.name):
        if not kept.last:
            continue
        path = directory / kept.file
        try:
            info = await restore.restore(bus, by_name[kept.name], kept, path, replicas, shown.of(kept.name))
        except (BusError, ArchiveError, MessageError) as error:
            await _undone(bus, [*(one.name for one in made), kept.name])
            raise CliError(
                f"{kept.name} was not restored: {error}", "what had been restored was removed again; try again"
            ) from error
        next_one = info.state.last_seq + 1
        made.append(Restored(name=kept.name, messages=info.state.messages, last=kept.last, goes_on_at=next_one))
    return made


async def _emptied(bus: Bus) -> None:
    """Remove streams that never held anything.

    :raises CliError: one does
    """
    found = await restore.held(bus)
    used = [f"{name} up to {last}" for name, last in found.items() if last]
    if used:
        raise CliError(
            f"the server holds a cluster: {', '.join(used)}; nothing was done",
            "a restore makes the streams anew: stop every service, start NATS with an empty store, restore, and start "
            "the services then (docs/backup.md)",
        )
    for name in found:
        await restore.remove(bus, name)


async def _undone(bus: Bus, names: Sequence[str]) -> None:
    found = await restore.held(bus)
    for name in names:
        if name in found:
            await restore.remove(bus, name)


def _only_the_streams_themselves(bus: Bus) -> None:
    """
    :raises CliError: this identity sees mirrors, which lag
    """
    if bus.settings.jetstream_prefix != JETSTREAM:
        raise CliError("this identity reads mirrors of the streams, not the streams", AS_ADMIN)
