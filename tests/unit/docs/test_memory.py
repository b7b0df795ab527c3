"""docs/memory.md names structures and tests that exist, and every cache over input from outside is in it."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/memory.md").read_text(encoding="utf-8")
SOURCES = [ROOT / "proto", ROOT / "libs", ROOT / "services"]

UNBOUNDED = {
    "podyard.bus.archive._contributions": "one value",
    "podyard.configuration.reading._structure": "by type of the code",
    "podyard.kube_api.core.completing._plans": "one value: of the table that is committed",
    "podyard.kube_api.core.built_in.built_in": "one value: what is served of the table that is committed",
    "podyard.kube_api.core.built_in.groups": "one value",
    "podyard.kube_api.core.openapi._built_in": "by version of the groups that are served",
    "podyard.kube_api.core.patching.implied_values.implied": "by definition of the table that is committed",
    "podyard.kube_api.core.patching.shapes._key_default": "by field of the table that is committed",
    "podyard.kube_api.core.patching.shapes._known": "by field of the table that is committed",
    "podyard.kube_api.core.schemas._kinds": "one value",
    "podyard.kube_api.core.protobuf_shapes.shape_of": "by message of the table that is committed",
    "podyard.objects.api_numbers.table": "one value: the table itself",
    "podyard.objects.api_types._definitions": "one value: names of the table that is committed",
    "podyard.objects.api_types.table": "one value: the table itself",
    "podyard.objects.api_words.table": "one value: the table itself",
    "podyard.objects.decoding._decoder": "by type of the code",
    "podyard.objects.kinds._stored": "one value: kinds of the table that is committed",
    "podyard.objects.quantity_fields.branches": "by type of the code",
    "podyard.objects.type_check._custom": "one value",
    "podyard.objects.type_check.shape_of": "by definition of the table that is committed",
    "podyard.proto.codec.decoder": "by type of the code",
}
"""Caches without a bound, and why they need none: nothing from outside is a key."""

TINY = 16
"""Entries from which on a cache is worth a row: times of this second."""


def rows() -> list[list[str]]:
    """The cells of the tables of structures."""
    found = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in PAGE.splitlines() if line.startswith("|")
    ]
    return [row for row in found if len(row) == 6 and row[0] != "structure" and not row[0].startswith("-")]


def caches() -> Iterator[tuple[str, int | None]]:
    """Functions that are cached by functools, and how many entries they have at most."""
    for source in SOURCES:
        for path in source.rglob("*.py"):
            module = ".".join(path.relative_to(source).with_suffix("").parts)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    for decorator in node.decorator_list:
                        text = ast.unparse(decorator)
                        if re.match(r"(functools\.)?(cache$|lru_cache)", text):
                            size = re.search(r"maxsize=(\w+)", text)
                            bounded = size is not None and size[1] != "None"
                            number = int(size[1]) if size is not None and size[1].isdecimal() else 1 << 30
                            yield f"{module}.{node.name}", number if bounded else None


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_each_structure_exists(row: list[str]) -> None:
    module, _, name = row[1].strip("`").rpartition(".")
    assert hasattr(importlib.import_module(module), name)


def test_each_bound_holds_under_a_test_that_exists() -> None:
    last = ""
    for row in rows():
        last = last if row[5] == "the same" else row[5].strip("`")
        file, _, name = last.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"def {name}\(", text), f"{row[0]}: {last}"
        assert all(row), row


def test_caches_without_a_bound_are_known_by_name() -> None:
    assert {name for name, most in caches() if most is None} == set(UNBOUNDED)


def test_caches_with_a_bound_are_in_the_page() -> None:
    """By their module: one row tells of alike ones."""
    told = {row[1].strip("`").rpartition(".")[0] for row in rows()} | {
        "podyard.objects.times",
        "podyard.cluster.classify",
        "podyard.cluster.changes",
        "podyard.node_agent.core.eviction.amounts",
    }
    missing = {
        name for name, most in caches() if most is not None and most > TINY and name.rpartition(".")[0] not in told
    }
    assert not missing


def test_one_class_drops_what_was_not_used_the_longest_time() -> None:
    """No further copies of it: a dictionary whose first entries are dropped is a `Latest`, or a `Kept`."""
    found = {
        path.relative_to(ROOT).as_posix()
        for source in SOURCES
        for path in source.rglob("*.py")
        if "popitem(last=False)" in path.read_text(encoding="utf-8")
    }
    assert found == {"libs/podyard/memory/latest.py"}
