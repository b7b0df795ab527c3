"""From JSON to a typed view, at one door.

Documents that admission stored decode at once. What comes from elsewhere may hold nulls (they mean "absent"
in Kubernetes) and numbers for quantities: those are put right on a slower second try, never on the first.

Whatever is wrong with a document, decoding it raises `ObjectError`, never anything else. What admission would
refuse today for being out of bounds is read all the same; what cannot be represented is not: whole numbers
beyond int64 where a kind has one, nesting beyond `MOST_NESTED`.
"""

import re
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from podyard.memory.kept import Kept
from podyard.objects import amounts
from podyard.objects.core import Node, Pod
from podyard.objects.documents import Document, copy, is_list, is_mapping, strip_nulls
from podyard.objects.errors import ObjectError, QuantityError
from podyard.objects.kinds import CustomObject, Kind, Object, kind_of_resource
from podyard.objects.meta import ObjectMeta, View
from podyard.objects.pod import PodSpec, PodStatus
from podyard.objects.quantity import nano
from podyard.objects.quantity_fields import Branch, branches, faults, rewrite, text_of
from podyard.proto.codec import TOO_DEEP, why_unreadable
from podyard.proto.subjects import PODS

T = TypeVar("T", bound=msgspec.Struct)

MOST_NESTED: Final = 500
"""Levels of lists and mappings in a document. Half of what Python's stack has, so that whoever walks what was
decoded has the other half, and all readers agree on what can be read. New objects may have 100; version 0.1.0
stored up to 969."""

SPECS_BYTES: Final = 16 * 1024 * 1024
"""What specs of pods may take that others may share."""

DECODED: Final = 32
"""A spec takes so many times what it does as JSON, at most, its bytes included: a usual one five times, one
of very short names thirty times."""

MOST_TOLD: Final = 63
"""Characters of a name in an error."""

_PATH: Final = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$?(?P<path>[^`]*)`)?", re.DOTALL)
_WRONG_TYPE: Final = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
_BEYOND: Final = re.compile(r"Expected `int` (?P<side><=|>=) (?P<bound>-?\d+)")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
JSON_NAMES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
"""What JSON's types are called in refusals."""


@cache
def _decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_)


def decode(resource: str, payload: bytes | memoryview | msgspec.Raw) -> Object:
    """The object in `payload`, of the kind that lives under `resource`; custom kinds become a `CustomObject`.

    :raises ObjectError: if it is no JSON or not of the kind's shape; `field` says where
    :raises UnknownKindError: if no kind lives under `resource`
    """
    kind = kind_of_resource(resource)
    if kind.custom:
        return view(kind, document(payload))
    return decode_as(kind.type, payload)


def decode_stored(resource: str, namespace: str, name: str, payload: bytes | memoryview | msgspec.Raw) -> Object:
    """The object in `payload`, stored where one of this namespace and name is. A pod has the uid that
    admission gave it: readers know pods by it.

    :raises ObjectError: as `decode` does, for an object of another name or namespace, for a pod without a
        uid, and for amounts that are no quantities: nobody could say what a pod takes, or what a node has
    """
    shared = _sharing(payload) if resource == PODS else None
    found = decode(resource, payload) if shared is None else shared
    metadata = found.metadata
    if metadata.name != name:
        raise ObjectError(
            "metadata.name", f'is "{metadata.name[:MOST_TOLD]}", but it is stored as "{name[:MOST_TOLD]}"'
        )
    if metadata.namespace != namespace:
        told = f'is "{metadata.namespace[:MOST_TOLD]}", but it is stored in "{namespace[:MOST_TOLD]}"'
        raise ObjectError("metadata.namespace", told)
    if isinstance(found, Pod):
        if not metadata.uid:
            raise ObjectError("metadata.uid", "is missing")
        if shared is None:
            amounts.check(found)
    elif ways := branches(type(found)):
        _check_quantities(found, ways)
    return found


class _Outline(View, frozen=True, kw_only=True):
    """A pod whose spec was not looked at yet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw()
    status: PodStatus = PodStatus()


_read_outline: Final = msgspec.json.Decoder(_Outline).decode
_read_spec: Final = msgspec.json.Decoder(PodSpec).decode
_specs: Final = Kept[bytes, PodSpec](SPECS_BYTES)
"""By their bytes; their amounts are quantities."""


def _sharing(payload: bytes | memoryview | msgspec.Raw) -> Pod | None:
    """A pod whose amounts are quantities. Pods made from one template have one spec, byte by byte: it is
    decoded and checked once, and they share it.

    :return: None if anything is wrong with it, or unusual: decoded as others are, it is put right, or the
        fault is told
    """
    try:
        _check_nesting(payload)
        outline = _read_outline(payload)
        spec = _spec(bytes(outline.spec))
        amounts.check_status(outline.status)
    except Exception:  # boundary: a document from outside
        return None
    return Pod(metadata=outline.metadata, spec=spec, status=outline.status)


def _spec(written: bytes) -> PodSpec:
    found = _specs.get(written)
    if found is None:
        found = _read_spec(written)
        amounts.check_spec(found)
        _specs.keep(written, found, DECODED * len(written))
    else:
        _specs.use(written)
    return found


def _check_quantities(found: Object, ways: tuple[Branch, ...]) -> None:
    """Readers add these up without asking again. For pods, which are many, `amounts` looks at what is
    counted."""
    try:
        if isinstance(found, Node):  # told most often, and all that it has is here
            for text in (*found.status.allocatable.values(), *found.status.capacity.values()):
                nano(text)
            return
    except QuantityError:
        pass  # said below, with its field
    fault = next(faults(msgspec.to_builtins(found), ways), None)
    if fault is not None:
        raise ObjectError(fault.field, fault.detail)


def decode_as(type_: type[T], payload: bytes | memoryview | msgspec.Raw) -> T:
    """The object in `payload` as a `type_`.

    :raises ObjectError: if it is no JSON or not of that shape
    """
    _check_nesting(payload)
    try:
        return _decoder(type_).decode(payload)
    except msgspec.ValidationError as error:
        try:
            doc = document(payload)
        except ObjectError:
            raise _readable(error, None) from error  # it knows the field
        return convert(type_, strip_nulls(doc))
    except Exception as error:  # boundary: a document from outside
        raise _not_json(error) from error


def document(payload: bytes | memoryview | msgspec.Raw) -> Document:
    """`payload` as a JSON document.

    :raises ObjectError: if it is no JSON, or no mapping
    """
    _check_nesting(payload)
    try:
        return msgspec.json.decode(payload, type=dict[str, Any])
    except msgspec.ValidationError as error:
        raise _readable(error, None) from error
    except Exception as error:  # boundary: a document from outside
        raise _not_json(error) from error


def view(kind: Kind, doc: Document) -> Object:
    """The typed view of a document. The document is not changed.

    :raises ObjectError: if it does not have the kind's shape
    """
    if kind.custom:
        known = strip_nulls(copy({"metadata": doc.get("metadata")}))
        return CustomObject(metadata=convert(_Custom, known).metadata, raw=doc)
    try:
        return msgspec.convert(doc, kind.type)
    except msgspec.ValidationError:
        return convert(kind.type, strip_nulls(copy(doc)))


class _Custom(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


def convert(type_: type[T], doc: Document) -> T:
    """`doc` as a `type_`; numbers for quantities become text, in place.

    :raises ObjectError: if it does not have that shape
    """
    rewrite(doc, branches(type_), text_of)
    try:
        return msgspec.convert(doc, type_)
    except msgspec.ValidationError as error:
        raise _readable(error, doc) from error


def _not_json(error: Exception) -> ObjectError:
    reason = why_unreadable(error)
    return ObjectError("", reason if reason == TOO_DEEP else f"not valid JSON: {reason}")


def _check_nesting(payload: bytes | memoryview | msgspec.Raw) -> None:
    """
    :raises ObjectError: if the document has more than `MOST_NESTED` levels
    """
    if len(payload) <= 2 * MOST_NESTED:
        return  # each level has two brackets
    text = bytes(payload)
    if text.count(b"{") + text.count(b"[") > MOST_NESTED and _levels(text) > MOST_NESTED:
        raise ObjectError("", f"{TOO_DEEP}: more than {MOST_NESTED} levels")


def _levels(text: bytes) -> int:
    """How deep lists and mappings nest; about 10 ns a byte. Of what is no JSON, some number."""
    import numpy as np  # few documents have so many brackets: not at the start of each command

    plain = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), dtype=np.uint8)
    inside_text = np.cumsum(plain == ord('"'), dtype=np.uint8) & 1  # only the last bit is looked at: it may wrap
    step = np.zeros(256, dtype=np.int8)
    step[list(b"[{")], step[list(b"]}")] = 1, -1
    return int(np.cumsum(step[plain] * (1 - inside_text).astype(np.int8), dtype=np.int32).max())


def _readable(error: msgspec.ValidationError, doc: Any) -> ObjectError:
    """msgspec's fault in the words of this package, its path without `$`, with the map key that msgspec
    leaves out."""
    match = _PATH.fullmatch(str(error))
    what, path = (match["what"], match["path"] or "") if match else (str(error), "")
    if wrong := _WRONG_TYPE.fullmatch(what):
        wanted = " or ".join(JSON_NAMES.get(part, part) for part in wrong["wanted"].split(" | ") if part != "null")
        what = f"must be {wanted}, is {JSON_NAMES.get(wrong['got'], wrong['got'])}"
        if wrong["wanted"].startswith("str") and wrong["got"] in ("int", "float", "bool"):
            what += ": put it in quotes"
        path = _with_key(path, doc, wrong["got"])
    elif beyond := _BEYOND.fullmatch(what):
        what = f"must be at {'most' if beyond['side'] == '<=' else 'least'} {beyond['bound']}"
    elif missing := _MISSING.fullmatch(what):
        what = f'misses the required field "{missing["name"]}"'
    return ObjectError(path.lstrip("."), what)


def _with_key(path: str, doc: Any, got: str) -> str:
    """`path` with `[...]`, msgspec's word for some key of a map, replaced by the first key whose value has
    type `got`."""
    before, dots, after = path.partition("[...]")
    if not dots or after:
        return path
    for step in re.findall(r"[^.\[\]]+", before):
        if is_list(doc):
            doc = doc[int(step)] if step.isdecimal() and int(step) < len(doc) else None
        else:
            doc = doc.get(step) if is_mapping(doc) else None
    kinds = {"int": int, "float": float, "bool": bool, "str": str, "array": list, "object": dict, "null": type(None)}
    for key, item in doc.items() if is_mapping(doc) else ():
        if type(item) is kinds.get(got):
            return f"{before}[{key}]"
    return path
