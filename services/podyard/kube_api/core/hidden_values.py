"""Values of Secrets that are not shown: in base64 like all others, as client libraries decode what they are
told. Pure."""

from podyard.objects import secrets
from podyard.objects.documents import Document, is_mapping


def encode(document: Document, resource: str) -> Document:
    """The object with what is hidden in base64; the same that was given.

    :param resource: where it is stored
    """
    data = document.get("data")
    if resource == secrets.RESOURCE and is_mapping(data):
        document["data"] = {
            name: secrets.HIDDEN_ENCODED if value == secrets.HIDDEN else value for name, value in data.items()
        }
    return document
