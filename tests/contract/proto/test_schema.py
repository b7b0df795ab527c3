"""The generated schemas say what the code says, and are valid by the official schemas."""

import gzip
import json
from importlib.metadata import version
from pathlib import Path

import jsonschema
import msgspec
import pytest
from msgspec import inspect

from podyard.proto import catalogue, codec, schema
from tests.contract.proto import filled

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[2] / "proto" / "schema"


def test_schema_files_are_current():
    assert schema.stale(SCHEMAS, version("podyard")) == []


def test_a_changed_schema_file_is_noticed(tmp_path: Path):
    schema.write(tmp_path, "1.0")
    assert schema.stale(tmp_path, "1.0") == []
    (tmp_path / "Fence.json").write_text("{}")
    (tmp_path / "Old.json").write_text("{}")
    assert schema.stale(tmp_path, "1.0") == ["Fence.json", "Old.json"]


def test_the_document_is_valid_asyncapi_3():
    official = json.loads(gzip.decompress((HERE / "asyncapi-3.0.0.json.gz").read_bytes()))
    document = json.loads((SCHEMAS / "asyncapi.json").read_text())
    validator = jsonschema.Draft7Validator(official)
    assert [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(document)] == []
    document["channels"]["fence"]["wrong"] = "unknown key"
    assert not validator.is_valid(document)


@pytest.mark.parametrize("message", catalogue.messages(), ids=lambda message: message.__name__)
def test_each_message_fits_its_schema_and_a_wrong_type_does_not(message: type[msgspec.Struct]):
    document = json.loads((SCHEMAS / f"{message.__name__}.json").read_text())
    jsonschema.Draft7Validator.check_schema(document)
    validator = jsonschema.Draft202012Validator(document)
    value = json.loads(codec.encode(filled.full(inspect.type_info(message))))
    validator.validate(value)
    assert not validator.is_valid(value | {next(iter(value)): {"wrong": []}})
