"""Names of sessions: one start of a process, or what it begins anew in its life. They carry the instance's
name.

<instance>-<8 hexadecimal digits>          the process
<instance>-<8 hexadecimal digits>-<n>      its nth session, if it has several
"""

import re
import secrets
from typing import Final

_SESSION: Final = re.compile(r"(.+)-[0-9a-f]{8}(?:-\d+)?")


def begin(instance: str) -> str:
    """A name that no other start of any process has."""
    return f"{instance}-{secrets.token_hex(4)}"


def instance_of(session: str) -> str:
    """Whose session it is; a name that was made elsewhere stands for itself."""
    found = _SESSION.fullmatch(session)
    return found[1] if found else session
