"""Values of Podyard's own enumerations as people read them; messages have them in camelCase."""

import re
from typing import Final

_BETWEEN: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def spoken(value: str) -> str:
    """`bind error` for `bindError`.

    :param value: of an attempt's outcome, a write's outcome, or the reason of a release
    """
    return _BETWEEN.sub(" ", value).lower()
