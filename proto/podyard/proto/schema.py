"""JSON Schema of every message and an AsyncAPI 3 document, made from the catalogue.

`python -m podyard.proto.schema DIR` writes them; with `--check` it only tells whether the files are current.
"""

import argparse
import inspect
import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from podyard.proto import catalogue, streams
from podyard.proto.catalogue import Channel

JSON_SCHEMA_FORMAT: Final = "application/schema+json;version=draft-07"
DEFINITIONS: Final = "#/$defs/"


def _raw_schema(type_: Any) -> dict[str, Any]:
    """Schema of a `msgspec.Raw` field: any JSON value, since proto knows no Kubernetes objects."""
    if type_ is not msgspec.Raw:
        raise TypeError(f"no schema for {type_}")
    return {"description": "a Kubernetes object as JSON, or null"}


def components() -> dict[str, dict[str, Any]]:
    """Schemas by message name, parts included, with references of the form `#/$defs/<name>`."""
    _, definitions = msgspec.json.schema_components(
        catalogue.messages(), schema_hook=_raw_schema, ref_template=DEFINITIONS + "{name}"
    )
    return {name: _cleaned(definitions[name]) for name in sorted(definitions)}


def _cleaned(definition: dict[str, Any]) -> dict[str, Any]:
    """Without the indentation of docstrings, which Python 3.13 strips and older ones keep."""
    if "description" in definition:
        definition["description"] = inspect.cleandoc(definition["description"])
    return definition


def _references(schema: Any) -> set[str]:
    """Names that `schema` refers to, directly."""
    text = json.dumps(schema)
    return set(re.findall(re.escape(DEFINITIONS) + r"([A-Za-z0-9]+)", text))


def _closure(name: str, definitions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The definitions that `name` needs, itself included, by name."""
    needed: set[str] = set()
    pending = {name}
    while pending:
        needed |= pending
        pending = {ref for one in pending for ref in _references(definitions[one])} - needed
    return {one: definitions[one] for one in sorted(needed)}


def message_schema(name: str, definitions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A self-contained draft-07 schema of one message."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": name,
        "$ref": DEFINITIONS + name,
        "$defs": _closure(name, definitions),
    }


def _summary(type_: type[Any]) -> str:
    return (type_.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")


def _channel(channel: Channel) -> dict[str, Any]:
    names: list[str] = re.findall(r"{(\w+)}", channel.address)
    parameters: dict[str, dict[str, Any]] = {name: {} for name in names}
    document: dict[str, Any] = {
        "address": channel.address,
        "description": _channel_description(channel),
        "messages": {
            message.__name__: {"$ref": f"#/components/messages/{message.__name__}"} for message in channel.messages
        },
    }
    if parameters:
        document["parameters"] = parameters
    return document


def _channel_description(channel: Channel) -> str:
    if channel.stream is not None:
        return f"{channel.kind}, kept by the stream {channel.stream.name}: {channel.stream.purpose}"
    return "request; answered by its service" if channel.kind == "request" else "not stored"


def _reply_channel(channel: Channel) -> dict[str, Any]:
    assert channel.reply is not None
    name = channel.reply.__name__
    return {
        "address": None,
        "description": f"replies to {channel.address}, on the requester's inbox",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
    }


def _operation(channel: Channel) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "action": "send",
        "channel": {"$ref": f"#/channels/{channel.name}"},
        "messages": [
            {"$ref": f"#/channels/{channel.name}/messages/{message.__name__}"} for message in channel.messages
        ],
    }
    if channel.reply is not None:
        reply = f"#/channels/{channel.name}Reply"
        operation["reply"] = {
            "channel": {"$ref": reply},
            "messages": [{"$ref": f"{reply}/messages/{channel.reply.__name__}"}],
        }
    return operation


def _message(type_: type[Any], definitions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": type_.__name__,
        "contentType": "application/json",
        "summary": _summary(type_),
        "headers": {
            "type": "object",
            "properties": {"traceparent": {"type": "string", "description": "W3C trace context of the cause"}},
        },
        "payload": {"schemaFormat": JSON_SCHEMA_FORMAT, "schema": message_schema(type_.__name__, definitions)},
    }


def asyncapi(version: str) -> dict[str, Any]:
    """The AsyncAPI 3.0 document of the whole bus. `version` is the distribution's."""
    definitions = components()
    channels = {channel.name: _channel(channel) for channel in catalogue.CHANNELS}
    channels |= {f"{channel.name}Reply": _reply_channel(channel) for channel in catalogue.CHANNELS if channel.reply}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Podyard",
            "version": version,
            "description": "The bus of a Kubernetes scheduling plane: state, requests and records as typed messages. Streams: "
            + "; ".join(f"{stream.name} ({stream.purpose})" for stream in streams.ALL_STREAMS),
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": {f"send_{channel.name}": _operation(channel) for channel in catalogue.CHANNELS},
        "components": {
            "messages": {type_.__name__: _message(type_, definitions) for type_ in catalogue.messages()},
        },
    }


def documents(version: str) -> dict[str, str]:
    """Every generated file: name -> text."""
    definitions = components()
    schemas: dict[str, Any] = {
        f"{type_.__name__}.json": message_schema(type_.__name__, definitions) for type_ in catalogue.messages()
    }
    schemas["asyncapi.json"] = asyncapi(version)
    return {name: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for name, document in schemas.items()}


def stale(directory: Path, version: str) -> list[str]:
    """Names of files in `directory` that are missing, superfluous or differ from what the code says,
    sorted."""
    wanted = documents(version)
    there = {path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.json")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def write(directory: Path, version: str) -> None:
    """Make `directory` hold exactly the generated files."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = documents(version)
    for path in directory.glob("*.json"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write or check the generated files; exit 1 if some are not current."""
    parser = argparse.ArgumentParser(prog="python -m podyard.proto.schema", description=main.__doc__)
    parser.add_argument("directory", type=Path, help="where the files are, e.g. proto/schema")
    parser.add_argument("--check", action="store_true", help="write nothing, name the files that are not current")
    arguments = parser.parse_args()
    version = metadata.version("podyard")
    if not arguments.check:
        write(arguments.directory, version)
        return
    different = stale(arguments.directory, version)
    if different:
        sys.exit(
            f"{arguments.directory}: not current: {', '.join(different)}; run `python -m podyard.proto.schema {arguments.directory}`"
        )


if __name__ == "__main__":
    main()
