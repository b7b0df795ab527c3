"""The command line."""

import re
import sys
from typing import Final

from podyard.cli import app
from tools.reference.markdown import narrow

TITLE: Final = "# podyard\n"
MADE: Final = "# Commands\n\n<!-- made of the code by `make reference`; changes belong there -->\n"


def made() -> str:
    """The page: what `--help` says of each command."""
    text = _documented()
    assert text.startswith(TITLE)
    text = narrow(MADE + text.removeprefix(TITLE))
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _documented() -> str:
    typed, sys.argv = sys.argv, ["podyard"]  # cyclopts reads from there by which words the program was started
    try:
        return app.build(load_all=True).generate_docs(output_format="markdown", recursive=True)
    finally:
        sys.argv = typed
