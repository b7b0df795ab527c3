"""The label selector that a command was given with `-l`."""

from podyard.cli.errors import InputError
from podyard.objects import label_text
from podyard.objects.errors import LabelTextError
from podyard.objects.selectors import Selector


def parse(text: str) -> Selector:
    """Read a selector as kubectl does; the empty one selects everything.

    :raises InputError: if it is none
    """
    try:
        return label_text.parse(text)
    except LabelTextError as error:
        raise InputError(f"selector {text!r}: {error}", "for example -l app=web,tier!=test") from error
