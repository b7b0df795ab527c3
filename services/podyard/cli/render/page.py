"""A page of Markdown, for people."""

import re
import sys

from rich.markdown import Markdown

from podyard.cli.render.console import console

_LINK = re.compile(r"\[([^\]]+)\]\((?:#|([\w./-]+))[^)]*\)")


def show(text: str) -> None:
    """Print it: laid out on a terminal, as it is written elsewhere. Links within the page are words there;
    others are followed by the page that they lead to, below docs/."""
    plain = _LINK.sub(lambda found: found[1] + (f" (docs/{found[2]})" if found[2] else ""), text)
    if sys.stdout.isatty():
        console().print(Markdown(plain))
    else:
        print(plain.rstrip())
