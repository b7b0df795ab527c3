"""What comes in a request's body: bounded, in JSON, YAML or protobuf, as a document; options of a request.

Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/rest.go, create.go, patch.go, delete.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request

from podyard.kube_api.core import errors, protobuf
from podyard.kube_api.core.errors import ApiError
from podyard.objects import decoding
from podyard.objects.documents import Document, is_mapping
from podyard.objects.errors import ObjectError
from podyard.objects.yaml_reader import YamlError
from podyard.objects.yaml_reader import read as read_yaml
from podyard.proto.objects_api import Validation

MOST_BYTES: Final = 3 * 1024 * 1024
"""Of a body. Source: apiserver/pkg/server/config.go, MaxRequestBodyBytes."""

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


def document(body: bytes, media: str) -> Document:
    """The body as a document.

    :raises ApiError: 415, in another language; 400, it cannot be read
    """
    reader = _READERS.get(media)
    if reader is None:
        raise unsupported(media, tuple(_READERS))
    return reader(body)


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


def validation(query: Mapping[str, str]) -> Validation:
    """What becomes of unknown fields.

    :raises ApiError: 422, in the reference's words
    """
    given = query.get("fieldValidation", "")
    if given not in _VALIDATIONS:
        raise errors.bad_request(
            f'fieldValidation: Unsupported value: "{given[:63]}": supported values: "Ignore", "Strict", "Warn"'
        )
    return _VALIDATIONS[given]


def dry_run(given: list[str]) -> bool:
    """Whether nothing is to be written.

    :param given: all values of `dryRun`
    :raises ApiError: 422, a value is not `All`
    """
    if any(one != "All" for one in given):
        raise errors.bad_request(f'dryRun: Unsupported value: "{given[0][:63]}": supported values: "All"')
    return bool(given)
