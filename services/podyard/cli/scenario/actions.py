"""Reading one action of a step; each function notes what is wrong and returns what it could make of the
rest."""

import re
from pathlib import Path
from typing import Any, Final, cast

import yaml

from podyard.cli import selection
from podyard.cli.errors import InputError
from podyard.cli.options import DEFAULT_NAMESPACE
from podyard.cli.scenario import model
from podyard.cli.scenario.faults import Faults, items, mapping
from podyard.cli.targets import kind_named, reference
from podyard.objects.errors import ManifestError, ObjectError
from podyard.objects.kinds import kind_of_event
from podyard.objects.manifests import Manifest
from podyard.objects.manifests import load as load_manifests
from podyard.objects.selectors import EVERYTHING, Selector
from podyard.proto import actions as action_types
from podyard.proto.message import ObjectRef

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def duration(value: Any, path: str, faults: Faults) -> float:
    """Seconds from `2s`, `500ms`, `1m`, `1h` or a number."""
    found = _DURATION.fullmatch(str(value).strip()) if not isinstance(value, bool) else None
    if found is None:
        faults.add(path, f"{value!r} is no duration; write 500ms, 2s, 1m or a number of seconds")
        return 0.0
    return float(found[1]) * _UNITS[found[2]]


def whole(value: Any, path: str, faults: Faults, *, least: int = 0) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    faults.add(path, f"{value!r} is no whole number from {least}")
    return least


def number(value: Any, path: str, faults: Faults) -> float:
    """A number, 0 or more."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    faults.add(path, f"{value!r} is no number from 0")
    return 0.0


def reject_unknown(fields: dict[str, Any], known: tuple[str, ...], path: str, faults: Faults) -> None:
    """Note every key that is not known."""
    for key in fields:
        if key not in known:
            faults.add(f"{path}.{key}", f"unknown; there are {', '.join(known)}")


def apply(value: Any, path: str, faults: Faults, directory: Path) -> model.Apply:
    """Objects in place, or `file: NAME`."""
    found: list[Manifest] = []
    for index, item in enumerate(items(value)):
        found += _objects(item, f"{path}[{index}]", faults, directory)
    return model.Apply(documents=tuple(_placed(manifest) for manifest in found))


def _objects(item: Any, path: str, faults: Faults, directory: Path) -> list[Manifest]:
    fields = mapping(item, path, faults)
    if not fields:
        return []
    try:
        if "file" in fields:
            name = directory / str(fields["file"])
            return load_manifests(str(name), name.read_text(encoding="utf-8"))
        return load_manifests("", yaml.safe_dump(fields))
    except ManifestError as error:
        place = f"{path}.{error.field}" if "file" not in fields and error.field else path
        faults.add(place, str(error) if "file" in fields else error.detail)
    except (OSError, UnicodeDecodeError) as error:
        faults.add(f"{path}.file", str(error))
    return []


def _placed(manifest: Manifest) -> dict[str, Any]:
    if manifest.kind.namespaced and not manifest.kind.custom:
        manifest.document["metadata"].setdefault("namespace", DEFAULT_NAMESPACE)
    return manifest.document


def _ref(value: Any, path: str, faults: Faults) -> ObjectRef | None:
    """`kind/name` or `kind/namespace/name`."""
    parts = str(value).split("/")
    if not isinstance(value, str) or len(parts) not in (2, 3) or not all(parts):
        faults.add(path, f"{value!r}: expected KIND/NAME or KIND/NAMESPACE/NAME")
        return None
    try:
        return reference(kind_named(parts[0]), parts[1] if len(parts) == 3 else None, parts[-1])
    except InputError as error:
        faults.add(path, error.message)
        return None


def delete(value: Any, path: str, faults: Faults, directory: Path) -> model.Delete:
    """`kind/name`, a list of them, or `{objects: [...], gracePeriod: 0}`."""
    del directory
    grace: int | None = None
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        reject_unknown(fields, ("objects", "gracePeriod"), path, faults)
        value = fields.get("objects", [])
        if "gracePeriod" in fields:
            grace = whole(fields["gracePeriod"], f"{path}.gracePeriod", faults)
    refs = [_ref(item, f"{path}[{index}]", faults) for index, item in enumerate(items(value))]
    return model.Delete(refs=tuple(ref for ref in refs if ref is not None), grace_period_s=grace)


def patch(value: Any, path: str, faults: Faults, directory: Path) -> model.Patch | None:
    """`{object: kind/name, with: {...}}`."""
    del directory
    fields = mapping(value, path, faults)
    reject_unknown(fields, ("object", "with"), path, faults)
    ref = _ref(fields.get("object"), f"{path}.object", faults)
    change = mapping(fields.get("with"), f"{path}.with", faults)
    return None if ref is None else model.Patch(ref=ref, change=change)


def event(text: Any, path: str, faults: Faults) -> tuple[str, str]:
    """Resource and action of `Node/UpdateNodeTaint`."""
    resource, slash, action = str(text).rpartition("/")
    if not slash or not resource:
        faults.add(path, f"{text!r}: expected RESOURCE/ACTION, for example Node/UpdateNodeTaint")
        return "", ""
    try:
        kind_of_event(resource)
        action_types.parse(action)
    except ObjectError as error:
        faults.add(path, error.detail)
    except ValueError as error:
        faults.add(path, str(error))
    return resource, action


def publish(value: Any, path: str, faults: Faults, directory: Path) -> model.Publish:
    """`Node/Add`, or `{event, object, old, count, rate}`."""
    fields = {"event": value} if isinstance(value, str) else mapping(value, path, faults)
    reject_unknown(fields, ("event", "object", "old", "count", "rate"), path, faults)
    resource, action = event(fields.get("event"), f"{path}.event", faults)
    return model.Publish(
        resource=resource,
        action=action,
        new=_object(fields, "object", path, faults, directory),
        old=_object(fields, "old", path, faults, directory),
        count=whole(fields.get("count", 1), f"{path}.count", faults, least=1),
        rate=number(fields.get("rate", 0), f"{path}.rate", faults),
    )


def _object(fields: dict[str, Any], key: str, path: str, faults: Faults, directory: Path) -> dict[str, Any] | None:
    if key not in fields:
        return None
    found = _objects(fields[key], f"{path}.{key}", faults, directory)
    if len(found) > 1:
        faults.add(f"{path}.{key}", f"must be one object, the file has {len(found)}")
    return found[0].document if found else None


def wait(value: Any, path: str, faults: Faults, directory: Path) -> model.Wait | None:
    """`{pods|nodes: NAME or SELECTOR or all, are: STATE, count, namespace, within}`."""
    del directory
    fields = mapping(value, path, faults)
    reject_unknown(fields, ("pods", "nodes", "are", "count", "namespace", "within"), path, faults)
    if ("pods" in fields) == ("nodes" in fields):
        faults.add(path, "must name either pods or nodes")
        return None
    what = "pods" if "pods" in fields else "nodes"
    states = model.POD_STATES if what == "pods" else model.NODE_STATES
    if fields.get("are") not in states:
        faults.add(f"{path}.are", f"{fields.get('are')!r}: {what} can be {', '.join(states)}")
    chosen = str(fields[what])
    by_label = any(sign in chosen for sign in "=!, ")
    count = whole(fields["count"], f"{path}.count", faults) if "count" in fields else None
    return model.Wait(
        what=what,
        state=str(fields.get("are")),
        namespace=str(fields.get("namespace", DEFAULT_NAMESPACE)),
        name="" if by_label or chosen == "all" else chosen,
        selector=_selector(chosen if by_label else "", f"{path}.{what}", faults),
        count=count,
        within_s=duration(fields.get("within", model.WITHIN_S), f"{path}.within", faults),
    )


def _selector(text: str, path: str, faults: Faults) -> Selector:
    try:
        return selection.parse(text)
    except InputError as error:
        faults.add(path, error.message)
        return EVERYTHING
