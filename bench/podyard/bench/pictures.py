"""Pictures of measurements: what a person may name, and what may go wrong while one is drawn."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from podyard.cli.errors import CliError, InputError

KINDS: Final = (".svg", ".png")


def check(plot: str) -> None:
    """
    :raises InputError: `plot` is given and is no file that a picture can be drawn into
    """
    if plot and Path(plot).suffix not in KINDS:
        raise InputError(f"--plot {plot}: a picture is drawn as .svg or .png", f"e.g. --plot {Path(plot).stem}.svg")


@contextmanager
def drawing(picture: Path) -> Generator[None]:
    """Import what draws and draw, in the block.

    :raises CliError: matplotlib is missing, or the file cannot be written
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("matplotlib"):
            raise
        raise CliError(
            "pictures are drawn with matplotlib, which is not installed",
            "install it beside Podyard: pip install matplotlib, pipx inject podyard matplotlib; in a checkout, make setup",
        ) from error
    except OSError as error:
        raise CliError(f"{picture}: cannot be written: {error.strerror or error}", "name another file") from error
