"""The same answers as the reference's own code gave: data/patching.json says how they were made."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.patching.applying import apply, tracked
from podyard.kube_api.core.patching.json_patch import json_patch
from podyard.kube_api.core.patching.merge_patch import merge_patch
from podyard.kube_api.core.patching.strategic import strategic
from podyard.objects.api_types import definition_of
from podyard.objects.documents import Document, copy, copy_without_nulls

NOW: Final = "2026-01-01T00:00:00Z"


@cache
def recorded() -> list[Document]:
    path = Path(__file__).parents[1] / "data" / "patching.json"
    return json.loads(path.read_text(encoding="utf-8"))["cases"]


def cases(of: str) -> list[Any]:
    return [pytest.param(one, id=f"{of}-{at}") for at, one in enumerate(recorded()) if one["of"] == of]


def patched(case: Document) -> Document:
    document, patch = case["document"], case["patch"]
    if case["of"] == "json":
        return json_patch(document, patch)
    if case["of"] == "merge":
        return merge_patch(document, patch)
    return strategic(document, patch, definition_of(case["apiVersion"], case["kind"]))


def test_there_are_answers_of_each_kind():
    assert {one["of"] for one in recorded()} == {"json", "merge", "strategic", "owners"}


@pytest.mark.parametrize("case", [*cases("json"), *cases("merge"), *cases("strategic")])
def test_a_patch_does_what_the_reference_does(case: Document):
    before = copy(case)
    if "error" in case["answer"]:
        with pytest.raises(ApiError) as refused:
            patched(case)
        if case["of"] == "strategic":
            assert refused.value.message == case["answer"]["error"]
    elif case["of"] == "strategic":
        assert patched(case) == copy_without_nulls(case["answer"]["result"])
    else:
        assert patched(case) == case["answer"]["result"]
    assert case == before, "neither the document nor the patch is changed"


@pytest.mark.parametrize("case", cases("owners"))
def test_fields_belong_to_whom_they_belong_in_the_reference(case: Document):
    definition = definition_of(case["apiVersion"], case["kind"])
    live: Document | None = None
    for step, answer in zip(case["steps"], case["answers"], strict=True):
        written = _written(live, step, definition, case["apiVersion"])
        if isinstance(written, str):
            assert written == answer.get("error")
            continue
        assert "error" not in answer
        live = written
        owners = [
            [one["manager"], one["operation"], one["apiVersion"], one["fieldsV1"]]
            for one in written["metadata"].get("managedFields", ())
        ]
        assert sorted(owners, key=str) == sorted(answer["managed"], key=str)
        if "result" in answer:
            shown = copy(written)
            shown["metadata"].pop("managedFields", None)
            assert shown == answer["result"]


def _written(live: Document | None, step: Document, definition: str | None, api_version: str) -> Document | str:
    """The refusal's message, if it is refused."""
    manager, wanted = step["manager"], step["object"]
    if step["op"] == "update":
        return tracked(live, wanted, manager, definition=definition, api_version=api_version, now=NOW)
    try:
        return apply(
            live, wanted, manager, force=step["force"], definition=definition, api_version=api_version, now=NOW
        )
    except ApiError as error:
        return error.message
