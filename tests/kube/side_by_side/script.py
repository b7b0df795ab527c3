"""Scripts: what is said to kubectl, in order, and what of its answers counts. Pure but for reading the files.

title: what the script is about
files:
  web.yaml: |
    ...
steps:
  - run: apply -f web.yaml
  - run: get deployment web -o jsonpath={.status.readyReplicas}
    until: ^2$
  - run: edit deployment web
    editor: s/replicas: 2/replicas: 3/
"""

import re
import shlex
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import yaml

FOLDER: Final = Path(__file__).parent / "scripts"
WITHIN_S: Final = 60.0

Compare = Literal["all", "sorted", "last", "code", "nothing"]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One command."""

    run: str
    """Words after `kubectl`, as in a shell, without expansion."""
    stdin: str = ""
    editor: str = ""
    """Commands of sed that edit the file which kubectl opens: `edit`."""
    until: str = ""
    """Run it again until this expression is found in what it prints; that answer counts."""
    ends: str = ""
    """It ends not by itself: it is interrupted when this expression is found in what it has printed."""
    meanwhile: tuple[str, ...] = ()
    """Commands run one after the other once it has begun to print; their output does not count."""
    within: float = WITHIN_S
    """Seconds for `until`, or for the command itself."""
    compare: Compare = "all"
    """What of the answer counts besides the exit code: all; the lines in any order; the last line, of a
    command that tells of its progress; `code` for nothing else; `nothing` for not even that."""
    mask: tuple[str, ...] = ()
    """Expressions for what differs from run to run in this answer only."""
    why: str = ""
    """What the step is to show, or why something of it does not count."""
    differs: str = ""
    """Why Podyard's answer is another than the reference's: docs/kubectl.md says it, too."""

    @property
    def words(self) -> list[str]:
        """Of the command."""
        return shlex.split(self.run)


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps that need each other, in a namespace of their own."""

    name: str
    """That of its file."""
    title: str
    files: dict[str, str] = {}
    """By path relative to the folder that kubectl runs in."""
    steps: tuple[Step, ...]

    @property
    def namespace(self) -> str:
        """Where its commands work if they name no other."""
        return f"script-{self.name}"


class ScriptError(Exception):
    """A file is no script; the text says why."""


def names() -> list[str]:
    """Of all scripts, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Script:
    """The script of that name.

    :raises ScriptError: there is none, or it is none
    """
    path = FOLDER / f"{name}.yaml"
    if not path.is_file():
        raise ScriptError(f"no script is called {name}; there are {', '.join(names())}")
    return read(name, path.read_text(encoding="utf-8"))


def read(name: str, text: str) -> Script:
    """A script out of its text.

    :raises ScriptError: it is none
    """
    try:
        found: Any = yaml.safe_load(text)
        script = msgspec.convert({"name": name, **found}, Script)
        for step in script.steps:
            if not step.words:
                raise ValueError("a step runs nothing")
            if step.until and step.ends:
                raise ValueError(f"{step.run}: `until` runs it again, `ends` interrupts it; say one")
            for expression in (step.until, step.ends, *step.mask):
                re.compile(expression)
    except (yaml.YAMLError, msgspec.ValidationError, TypeError, re.error, ValueError) as error:
        raise ScriptError(f"script {name}: {error}") from error
    return script
