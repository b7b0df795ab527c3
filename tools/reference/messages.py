"""Messages and subjects."""

import inspect
import re
from typing import Final

import msgspec

from podyard.cli.security import identities
from podyard.proto import catalogue, streams
from podyard.proto.catalogue import Channel
from tools.reference.markdown import narrow, page, table

ABOUT: Final = """What travels on NATS: each subject with what it carries, who may send it, and who keeps it.
What a message says of itself is the docstring of its Struct: who sends and reads it, and what a repetition
means. Its fields are in its schema; [asyncapi.json](../../proto/schema/asyncapi.json) has all of them in one
document. Who may send is what the identities of a [secured lab](../trust.md) allow (`agent-NODE` is the own agent of a node); without
keys anybody can. Requests are answered by the service whose name is the second token; `agents` are the node agents."""

KINDS: Final = {
    "state": ("State", "One message a subject: the last one counts."),
    "log": ("Records", "What has happened, each message by itself."),
    "request": ("Requests", "Answered, and not stored."),
    "ephemeral": ("Not stored", "Who does not listen misses it."),
}


def made() -> str:
    """The page."""
    parts: list[str] = []
    for kind, (title, about) in KINDS.items():
        parts += [f"## {title}", about]
        parts += [_section(channel) for channel in catalogue.CHANNELS if channel.kind == kind]
    return page("Messages and subjects", " ".join(ABOUT.split()), [*parts, "## Streams", _streams()])


def _section(channel: Channel) -> str:
    said = [f"### {channel.name}", f"`{channel.address}`{_kept(channel)}"]
    said.append("May be sent by: " + (", ".join(senders(channel.address)) or "nobody but the administrator") + ".")
    messages = (*channel.messages, *((channel.reply,) if channel.reply else ()))
    for message in messages:
        answer = " (the answer)" if message is channel.reply else ""
        said.append(f"[{message.__name__}](../../proto/schema/{message.__name__}.json){answer}: {_doc(message)}")
    return "\n\n".join(map(narrow, said))


def _kept(channel: Channel) -> str:
    return f", kept by the stream {channel.stream.name}" if channel.stream is not None else ""


def _doc(message: type[msgspec.Struct]) -> str:
    return " ".join((inspect.getdoc(message) or "").split())


def senders(address: str) -> list[str]:
    """Identities that may publish to an address of the catalogue, in the order of the table."""
    found: dict[str, None] = {}
    for identity in (*identities.core(), *identities.edge(), identities.agent("NODE", ("NODE",))):
        if identity.name == identities.ADMIN or _denied(identity, address):
            continue
        if any(overlap(_tokens(address), pattern.split(".")) for pattern in identity.publishes):
            found[identity.name] = None
    return list(found)


def _denied(identity: identities.Identity, address: str) -> bool:
    return any(covers(pattern.split("."), _tokens(address)) for pattern in identity.denied)


def _tokens(address: str) -> list[str]:
    return re.sub(r"{\w+}", "*", address).split(".")


def overlap(one: list[str], other: list[str]) -> bool:
    """Whether there is a subject that both patterns match."""
    if not one or not other:
        return not one and not other
    if ">" in (one[0], other[0]):
        return True
    return (one[0] == other[0] or "*" in (one[0], other[0])) and overlap(one[1:], other[1:])


def covers(pattern: list[str], other: list[str]) -> bool:
    """Whether a pattern matches every subject that the other one does."""
    if not pattern or not other:
        return not pattern and not other
    if pattern[0] == ">":
        return True
    return pattern[0] in ("*", other[0]) and other[0] != ">" and covers(pattern[1:], other[1:])


def _streams() -> str:
    head = ("stream", "subjects", "what it is for", "a subject", "at most", "kept for")
    return table(head, map(_stream, streams.ALL_STREAMS))


def _stream(spec: streams.StreamSpec) -> tuple[str, ...]:
    return (
        f"`{spec.name}`",
        ", ".join(f"`{subject}`" for subject in spec.subjects),
        spec.purpose,
        f"{spec.max_msgs_per_subject}" if spec.max_msgs_per_subject > 0 else "any number",
        f"{spec.max_bytes // streams.MEBIBYTE} MiB",
        _age(spec.max_age_s),
    )


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return "as long as it is the last one"
