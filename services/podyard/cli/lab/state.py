"""The file by which other commands find a running `podyard up`: one a lab, in the state directory.

Directory: `$PODYARD_STATE_DIR`, else `$XDG_STATE_HOME/podyard`, else `~/.local/state/podyard`. A file whose
process is gone (killed before it could tidy up) is ignored and removed.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec


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
    data_dir: str = ""
    security: str = ""
    """Directory of `podyard security init`, by which other commands connect as a person; empty: nobody has to
    log in."""
    started_at: float = 0.0
    """Seconds since 1970, UTC."""
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
