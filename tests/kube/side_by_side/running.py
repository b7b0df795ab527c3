"""Runs a script with the real kubectl against one target, and says what came back."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import yaml

from tests.kube.side_by_side import normal
from tests.kube.side_by_side.script import Script, Step

AGAIN_S: Final = 0.2
"""Between two runs of a command until something is so."""
LEAVES_S: Final = 120.0
"""For the namespace to go with all that is in it: the next script's nodes are free of its pods."""
TOO_LONG: Final = 124
"""Exit code of a command that did not end in time, as timeout(1) gives it."""
TEMPORARY: Final = "/tmp"


class Answer(NamedTuple):
    """What one step came to."""

    run: str
    code: int
    out: list[str]
    """Lines, as they are in every run."""
    err: list[str]


class Target(NamedTuple):
    """Who is asked."""

    kubectl: Path
    kubeconfig: Path


def run(script: Script, target: Target, told: Callable[[Answer], None] = lambda _: None) -> list[Answer]:
    """The answers of a script's steps, in order. Its namespace is made before and removed after.

    :param told: hears of every answer at once
    """
    found: list[Answer] = []
    with tempfile.TemporaryDirectory(prefix="podyard-kubectl-") as made:
        folder = Path(made)
        for name, text in script.files.items():
            path = folder / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        kubectl = _Kubectl(script, target, folder)
        kubectl.once(["create", "namespace", script.namespace])
        try:
            for step in script.steps:
                found.append(kubectl.answer(step))
                told(found[-1])
        finally:
            kubectl.once(["delete", "namespace", script.namespace], within_s=LEAVES_S)
    return found


class _Done(NamedTuple):
    code: int
    out: str
    err: str


class _Kubectl:
    """The command, with a script's files and namespace."""

    def __init__(self, script: Script, target: Target, folder: Path) -> None:
        self._program = target.kubectl
        self._folder = folder / "files"
        self._folder.mkdir(exist_ok=True)
        config: dict[str, Any] = yaml.safe_load(target.kubeconfig.read_text(encoding="utf-8"))
        for one in config["contexts"]:
            one["context"]["namespace"] = script.namespace
        _anchor(config, target.kubeconfig.parent)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "KUBECONFIG": str(kubeconfig),
            "TMPDIR": TEMPORARY,
            "TZ": "UTC",
            "LC_ALL": "C",
        }

    def answer(self, step: Step) -> Answer:
        done = self._until(step) if step.until else self._interrupted(step) if step.ends else self._run(step)
        here = str(self._folder)
        done = done._replace(out=done.out.replace(here, "<folder>"), err=done.err.replace(here, "<folder>"))
        return Answer(step.run, *_counting(step, done))

    def once(self, words: Sequence[str], stdin: str = "", within_s: float = 60, editor: str = "") -> _Done:
        """Run it to its end."""
        editing = {"KUBE_EDITOR": f"sed -i -e '{editor}'"} if editor else {}
        try:
            done = subprocess.run(
                [self._program, *words],
                cwd=self._folder,
                env={**self._environment, **editing},
                input=stdin,
                capture_output=True,
                text=True,
                timeout=within_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return _Done(TOO_LONG, _text(error.stdout), _text(error.stderr))
        return _Done(done.returncode, done.stdout, done.stderr)

    def _run(self, step: Step) -> _Done:
        return self.once(step.words, step.stdin, step.within, step.editor)

    def _until(self, step: Step) -> _Done:
        deadline = time.monotonic() + step.within
        while True:
            done = self._run(step)
            if re.search(step.until, done.out, re.MULTILINE):
                return done
            if time.monotonic() > deadline:
                return done._replace(code=TOO_LONG)
            time.sleep(AGAIN_S)

    def _interrupted(self, step: Step) -> _Done:
        """Until it has printed what it is to print; its exit code says only whether it did in time."""
        with subprocess.Popen(
            [self._program, *step.words],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            watchdog = threading.Timer(step.within, process.kill)
            watchdog.start()
            helpers: list[threading.Thread] = []
            try:
                said = ""
                for line in _lines_of(process.stdout):
                    if not said and step.meanwhile:
                        helpers.append(threading.Thread(target=self._meanwhile, args=(step.meanwhile,)))
                        helpers[0].start()
                    said += line
                    if re.search(step.ends, said, re.MULTILINE):
                        process.send_signal(signal.SIGINT)
                        return _Done(0, said, "")
                return _Done(TOO_LONG, said, "" if process.stderr is None else process.stderr.read())
            finally:
                for helper in helpers:
                    helper.join()
                process.wait()
                watchdog.cancel()

    def _meanwhile(self, commands: Sequence[str]) -> None:
        for command in commands:
            self.once(Step(run=command).words)


def _counting(step: Step, done: _Done) -> tuple[int, list[str], list[str]]:
    """Exit code and lines of which the step says that they count."""
    out, err = normal.lines(done.out, step.mask), normal.lines(done.err, step.mask)
    if done.code == TOO_LONG and step.within:
        return done.code, out, err
    match step.compare:
        case "all":
            return done.code, out, err
        case "sorted":
            return done.code, sorted(out), sorted(err)
        case "last":
            return done.code, out[-1:], err[-1:]
        case "code":
            return done.code, [], []
        case "nothing":
            return 0, [], []


def _anchor(config: dict[str, Any], folder: Path) -> None:
    """Files that a kubeconfig names are relative to where it lies, and it is copied to another place."""
    entries = [one["cluster"] for one in config.get("clusters", ())] + [one["user"] for one in config.get("users", ())]
    for entry in entries:
        for key in ("certificate-authority", "client-certificate", "client-key", "tokenFile"):
            if key in entry:
                entry[key] = str(folder / entry[key])


def _lines_of(pipe: IO[str] | None) -> Iterator[str]:
    yield from pipe or ()


def _text(found: str | bytes | None) -> str:
    return found.decode(errors="replace") if isinstance(found, bytes) else found or ""
