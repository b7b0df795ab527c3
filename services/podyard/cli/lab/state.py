"""The file by which other commands find a running `podyard up`: one a lab, in the state directory.

Directory: `$PODYARD_STATE_DIR`, else `$XDG_STATE_HOME/podyard`, else `~/.local/state/podyard`. A file whose
process is gone (killed before it could tidy up) is ignored and removed.
"""

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from podyard.cli.errors import InputError

DEFAULT_NAME: Final = "lab"
VARIABLE: Final = "PODYARD_NATS_SERVERS"
"""Names servers, or a lab."""
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""A name of one label, so that it is no server: those have a port, or a dot."""


class LabService(msgspec.Struct, frozen=True, kw_only=True):
    """One service process of a lab."""

    name: str
    pid: int = 0
    """0 while it is being restarted."""
    http: str = ""
    """`host:port` of /readyz, /metrics, ..."""
    log: str = ""
    """File with its standard error."""


class LabState(msgspec.Struct, frozen=True, kw_only=True):
    """What a running lab says about itself."""

    pid: int
    """Process id of `podyard up`."""
    url: str
    """NATS server."""
    name: str = ""
    """By which people choose it."""
    data_dir: str = ""
    security: str = ""
    """Directory of `podyard security init`, by which other commands connect as a person; empty: nobody has to
    log in."""
    started_at: float = 0.0
    """Seconds since 1970, UTC."""
    kubeconfig: str = ""
    """File by which kubectl gets in; empty: it serves no Kubernetes API."""
    services: dict[str, LabService] = {}
    """By instance name."""


def directory(environment: Mapping[str, str]) -> Path:
    """Where state files are; it need not exist."""
    if explicit := environment.get("PODYARD_STATE_DIR"):
        return Path(explicit)
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "podyard"


def write(state: LabState, environment: Mapping[str, str]) -> Path:
    """Write or replace a lab's file, whole or not at all."""
    path = _path(directory(environment), state.pid)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(msgspec.json.encode(state))
    temporary.replace(path)
    return path


def remove(pid: int, environment: Mapping[str, str]) -> None:
    """Remove a lab's file."""
    _path(directory(environment), pid).unlink(missing_ok=True)


def running(environment: Mapping[str, str]) -> list[LabState]:
    """Labs that run now, the one started last first."""
    return sorted(_living(directory(environment)), key=lambda state: state.started_at, reverse=True)


def chosen_name(wanted: str, environment: Mapping[str, str]) -> str:
    """The name of a new lab: the wanted one, else `lab`, or `lab-2` and so on beside others.

    :raises InputError: if it is none, or a running lab has it
    """
    taken = {state.name for state in running(environment)}
    if not wanted:
        numbered = (f"{DEFAULT_NAME}-{number}" for number in itertools.count(2))
        return next(name for name in itertools.chain([DEFAULT_NAME], numbered) if name not in taken)
    if not _NAME.fullmatch(wanted):
        raise InputError(f"--name {wanted}: not a name", "lower-case letters, digits and dashes, for example staging")
    if wanted in taken:
        raise InputError(f"a lab called {wanted} runs already", "`podyard labs` lists them")
    return wanted


def meant(named: str, environment: Mapping[str, str]) -> LabState | None:
    """The lab that a command works with: the one of that name or server, else the only one that runs. None:
    no lab is meant.

    :param named: name of a lab, servers by commas, or empty
    :raises InputError: if no lab has that name, or if several run and none was named
    """
    labs = running(environment)
    if named:
        found = next((lab for lab in labs if named in (lab.name, lab.url)), None)
        if found is None and _NAME.fullmatch(named):
            raise InputError(f"no lab called {named} runs here", _some(labs))
        return found
    if len(labs) > 1:
        raise InputError(
            "several labs run here, and none was named", f"say --nats NAME, or set {VARIABLE}; {_some(labs)}"
        )
    return labs[0] if labs else None


def _some(labs: Sequence[LabState]) -> str:
    return f"there are {', '.join(lab.name for lab in labs)}" if labs else "start one with `podyard up --name NAME`"


def _path(folder: Path, pid: int) -> Path:
    return folder / f"lab-{pid}.json"


def _living(folder: Path) -> Iterator[LabState]:
    for path in folder.glob("lab-*.json"):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=LabState)
        except (OSError, msgspec.DecodeError):
            continue
        if is_alive(state.pid):
            yield state
        else:
            path.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
