"""`podyard explain -f FILE --would`, and `--nodes`: where a pod would go, and what plugins say of nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from podyard.bus.connection import Bus

FEW: Final = 10
"""Nodes that fit, of which --nodes tells how good they are, and examples of those that do not."""


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """`--would` without a value, which stands for "where", as `--would=`."""
    following = [*arguments[1:], "-"]
    return [
        "--would=" if one == "--would" and after.startswith("-") else one
        for one, after in zip(arguments, following, strict=True)
    ]


class Asks(NamedTuple):
    """What `podyard explain` was given."""

    kind: str
    name: str
    would: str | None
    """An event; empty: where; None: not asked."""
    files: tuple[str, ...]
    old: str
    nodes: bool
    every: bool

    @property
    def where(self) -> bool:
        """Whether it is asked where a pod would go, or about nodes."""
        return self.would == "" or self.nodes or not self.kind


def run(asks: Asks, namespace: str | None, output: str, nats: str | None) -> int:
    """Ask a scheduler, and show what it says.

    :raises InputError: what was given does not go together
    """
    from podyard.cli import session
    from podyard.cli.options import DEFAULT_NAMESPACE

    name = _checked(asks)

    async def work(bus: "Bus") -> int:
        if name:
            return await _stored(bus, namespace or DEFAULT_NAMESPACE, name, asks, output)
        return await _files(bus, namespace, asks, output)

    return session.run(nats, work)


def _checked(asks: Asks) -> str:
    """
    :return: name of the stored pod; empty: the files are meant
    :raises InputError: what was given does not go together
    """
    from podyard.cli import targets
    from podyard.cli.errors import InputError

    usage = "podyard explain pod NAME --nodes, or podyard explain -f FILE --would"
    if not asks.kind and not asks.files:
        raise InputError("explain what?", "podyard explain pod NAME, or podyard explain -f FILE --would")
    if asks.would:
        wrong = "--nodes is about nodes as they are, --would EVENT about an event" if asks.nodes else "of which pod?"
        raise InputError(wrong, f"podyard explain pod NAME --would {asks.would}")
    if asks.old:
        raise InputError("--old belongs to --would EVENT", usage)
    if asks.kind and asks.files:
        raise InputError("a pod by its name, or files: one of them", usage)
    if asks.files and asks.would is None:
        raise InputError("what about the file?", "podyard explain -f FILE --would")
    if asks.every and not asks.nodes:
        raise InputError("--all shows each node with --nodes", usage)
    if asks.files:
        return ""
    found, slash, slashed = asks.kind.partition("/")
    name = slashed if slash else asks.name
    if targets.kind_named(found).kind != "Pod":
        raise InputError(f"--nodes and --would are about a pod, not about a {found}", usage)
    if not name:
        raise InputError("which pod?", usage)
    return name


def _limit(asks: Asks, output: str) -> int:
    from podyard.proto.scheduler_api import MOST_NODES

    if not asks.nodes:
        return 0
    return MOST_NODES if asks.every or output == "json" else FEW


async def _stored(bus: "Bus", namespace: str, name: str, asks: Asks, output: str) -> int:
    from podyard.cli.explain import would_go
    from podyard.cli.render import plain
    from podyard.cli.render import would_go as rendered

    reply = await would_go.of_stored(bus, namespace, name, _limit(asks, output))
    if output == "json":
        print(plain.dump(reply, "json"), end="")
    else:
        _show(rendered.of_stored(reply, _width(), nodes=asks.nodes, every=asks.every))
    return 0


async def _files(bus: "Bus", namespace: str | None, asks: Asks, output: str) -> int:
    """Exit code 2 if the api refuses a pod, as `apply` would."""
    import sys

    from podyard.cli.explain import would_go
    from podyard.cli.render import plain
    from podyard.cli.render import would_go as rendered

    found = await would_go.of_files(bus, asks.files, namespace, _limit(asks, output))
    if output == "json":
        print(plain.dump(found, "json"), end="")
    else:
        for warning in found.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        _show(rendered.of_files(found, _width(), nodes=asks.nodes, every=asks.every))
    return 2 if any(pod.reply is None for pod in found.pods) else 0


def _width() -> int:
    from podyard.cli.render import console

    return console.console().width


def _show(lines: list[str]) -> None:
    """Plain lines: with thousands of nodes a table of rich takes seconds."""
    print("\n".join(lines))
