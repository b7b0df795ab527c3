"""Suite `config`: KubeSchedulerConfiguration documents, decoded, defaulted, validated, built and written
back."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from podyard import configuration
from podyard.configuration import BuildError, DecodeError, FieldError, InvalidConfiguration
from tests.conformance import shapes
from tests.conformance.differences import ABSENT, Difference, between


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file's text."""

    document: str


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the reference got; `error` is for people."""

    stage: Literal["decode", "validate", "build", "ok"]
    strict: bool | None = None
    error: str = ""
    errors: list[dict[str, Any]] = []
    written: dict[str, Any] | None = None
    effective: dict[str, Any] | None = None


check = shapes.of(Given, Expected)


def run(given: dict[str, Any]) -> dict[str, Any]:
    """How far Podyard gets, in the form of `expected`."""
    try:
        found = configuration.load(msgspec.convert(given, Given).document)
        found.profiles()
    except DecodeError as error:
        return {"stage": "decode", "strict": error.strict, "error": str(error)}
    except InvalidConfiguration as error:
        return {"stage": "validate", "errors": [_spelled(one) for one in error.errors]}
    except BuildError as error:
        return {"stage": "build", "error": str(error)}
    return {"stage": "ok", "written": found.written(), "effective": found.effective()}


def _spelled(error: FieldError) -> dict[str, Any]:
    value = {} if error.bad_value is msgspec.UNSET else {"badValue": error.bad_value}
    return {"field": error.field, "type": error.type, "detail": error.detail, **value, "message": str(error)}


def compare(expected: Any, got: Any) -> Iterator[Difference]:
    """The stage and what it has to tell. Texts of `error` are Podyard's own; errors have no order."""
    if expected["stage"] != got["stage"]:
        told = got.get("error") or [one["message"] for one in got.get("errors", [])] or ""
        shown = f"{got['stage']}: {told}" if told else got["stage"]
        yield Difference(("stage",), expected["stage"], shown, f"stage {expected['stage']}")
        return
    match expected["stage"]:
        case "decode":
            yield from between(expected["strict"], got["strict"], ("strict",))
        case "validate":
            yield from _compare_errors(expected["errors"], got["errors"])
        case "ok":
            for part in ("written", "effective"):
                for one in between(expected[part], got[part], (part,)):
                    yield one._replace(group=part)
        case _:
            pass


def _compare_errors(wanted: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    """As multisets: of each error its field, type, detail and plain bad value."""
    theirs, ours = Counter(map(_essence, wanted)), Counter(map(_essence, found))
    for essence, count in (theirs - ours).items():
        for _ in range(count):
            yield Difference(("errors",), msgspec.json.decode(essence), ABSENT, "errors")
    for essence, count in (ours - theirs).items():
        for _ in range(count):
            yield Difference(("errors",), ABSENT, msgspec.json.decode(essence), "errors")


def _essence(error: Mapping[str, Any]) -> bytes:
    kept = [error["field"], error["type"], error.get("detail", "")]
    return msgspec.json.encode([*kept, error["badValue"]] if "badValue" in error else kept)
