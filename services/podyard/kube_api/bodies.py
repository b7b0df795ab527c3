"""What comes in a request's body: bounded, in JSON, YAML or protobuf, as a document; options of a request.

Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/rest.go, create.go, patch.go, delete.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request

from podyard.kube_api.core import errors, go_decoding, protobuf
from podyard.kube_api.core.errors import ApiError, Cause
from podyard.kube_api.core.listing import META_GROUP
from podyard.objects import decoding
from podyard.objects.documents import Document, is_mapping
from podyard.objects.errors import ObjectError
from podyard.objects.yaml_reader import YamlError
from podyard.objects.yaml_reader import read as read_yaml
from podyard.proto.objects_api import Validation

MOST_BYTES: Final = 3 * 1024 * 1024
"""Of a body. Source: apiserver/pkg/server/config.go, MaxRequestBodyBytes."""

SUMMARY_BYTES: Final = 30
"""Of a body that cannot be read. Source: rest.go, transformDecodeError."""

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

_VALIDATIONS: Final[Mapping[str, Validation]] = {"": "warn", "Strict": "strict", "Warn": "warn", "Ignore": "ignore"}


async def read(request: Request, more: Callable[[int], None]) -> bytes:
    """The whole body.

    :param more: told how many bytes came; may refuse them
    :raises ApiError: 413, it is too large; 429, all are together
    """
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > MOST_BYTES:
        raise _too_large()
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > MOST_BYTES:
            raise _too_large()
        more(len(chunk))
    return bytes(found)


def _too_large() -> ApiError:
    """Source: NewRequestEntityTooLargeError."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_BYTES}")


def media_type(request: Request) -> str:
    """Of the body; JSON if it is not said."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or JSON


def document(body: bytes, media: str, kind: str = "") -> Document:
    """The body as a document.

    :param kind: that is expected, for the refusal's words
    :raises ApiError: 415, in another language; 400, it cannot be read
    """
    reader = _READERS.get(media)
    if reader is None:
        raise unsupported(media, tuple(_READERS))
    if media == JSON and kind and (told := go_decoding.syntax_error(body)):
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {told} ({_summary(body)})"
        )
    return reader(body)


def _summary(body: bytes) -> str:
    """The beginning of a body. Source: rest.go, summarizeData."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > SUMMARY_BYTES else ""
    begin = body[:SUMMARY_BYTES]
    return (begin.decode(errors="replace") if body.startswith(b"{") else begin.hex()) + more


def unsupported(media: str, known: tuple[str, ...]) -> ApiError:
    """Source: negotiation.NewUnsupportedMediaTypeError."""
    told = ", ".join(known)
    return ApiError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {told}"
        if media not in PATCHES
        else f"the media type {media} is not served here - accepted media types include: {told}",
    )


def _json(body: bytes) -> Document:
    try:
        return decoding.document(body)
    except ObjectError as error:
        raise errors.bad_request(f"the object provided cannot be read: {error}") from error


def value(body: bytes) -> Any:
    """The body as any value of JSON, as a patch may be.

    :raises ApiError: 400, it cannot be read
    """
    if told := go_decoding.syntax_error(body):
        raise errors.bad_request(told)
    return _json(b'{"value":%b}' % body).get("value")


def yaml_document(body: bytes) -> Document:
    """One document of YAML, which JSON is, too.

    :raises ApiError: 400, it cannot be read
    """
    try:
        found = [one.content for one in read_yaml(body.decode()) if one.content is not None]
    except (YamlError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from error
    if len(found) != 1 or not is_mapping(found[0]):
        raise errors.bad_request("error decoding YAML: expected one object")
    return found[0]


_READERS: Final[Mapping[str, Callable[[bytes], Document]]] = {
    JSON: _json,
    YAML: yaml_document,
    PROTOBUF: protobuf.decode,
}


_OPTIONS: Final = {
    "create": "CreateOptions",
    "update": "UpdateOptions",
    "patch": "PatchOptions",
}
"""What the options of a request are called, by its verb; all others are `DeleteOptions`."""


def validation(query: Mapping[str, str], verb: str) -> Validation:
    """What becomes of unknown fields.

    :raises ApiError: 422, in the reference's words
    """
    given = query.get("fieldValidation", "")
    if given not in _VALIDATIONS:
        raise _wrong_option(verb, "fieldValidation", f'"{given[:63]}"', '"Ignore", "Strict", "Warn"')
    return _VALIDATIONS[given]


def dry_run(given: Sequence[str], verb: str) -> bool:
    """Whether nothing is to be written.

    :param given: all values of `dryRun`
    :raises ApiError: 422, a value is not `All`
    """
    if any(one != "All" for one in given):
        shown = " ".join(f'"{one[:63]}"' for one in given[:8])
        raise _wrong_option(verb, "dryRun", f"[{shown}]", '"All"')
    return bool(given)


def _wrong_option(verb: str, field: str, shown: str, supported: str) -> ApiError:
    """Source: apimachinery v0.36.2, pkg/apis/meta/v1/validation/validation.go; errors.NewInvalid."""
    told = f"Unsupported value: {shown}: supported values: {supported}"
    kind = _OPTIONS.get(verb, "DeleteOptions")
    return errors.invalid(kind, META_GROUP, "", [Cause("FieldValueNotSupported", told, field)])
