"""How large the parts of messages may be that come from outside: from people, bridges and agents. Those
of whole numbers are in `message` (`Count`, `Int64`).

A message beyond them is refused by its decoder, with the path of the fault and the bound.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

LAST_S: Final = 253_402_300_799
"""9999-12-31T23:59:59Z in seconds since 1970: RFC 3339 has no later year."""

Moment: TypeAlias = Annotated[float, Meta(ge=0, le=LAST_S, description="seconds since 1970, UTC")]

Name: TypeAlias = Annotated[str, Meta(max_length=253)]
"""A name or a uid. Source: apimachinery v0.36, validation.DNS1123SubdomainMaxLength."""

Time: TypeAlias = Annotated[str, Meta(max_length=64, description="RFC 3339, UTC")]

Word: TypeAlias = Annotated[str, Meta(max_length=1024)]
"""A reason in CamelCase, a type, or who somebody is. Source of its length: apimachinery v0.36,
metav1.Condition (reason)."""

Text: TypeAlias = Annotated[str, Meta(max_length=32768)]
"""Sentences. Source of its length: apimachinery v0.36, metav1.Condition (message)."""

MOST_PROFILES: Final = 64
"""Profiles that a request names. A configuration has one or a few."""

Digests: TypeAlias = Annotated[
    dict[Name, Name], Meta(max_length=MOST_PROFILES, description="profile name -> digest of plugins and arguments")
]
