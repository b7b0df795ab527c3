"""Label selectors as kubectl's `-l` takes them: `a=b,c!=d,e in (f,g),h,!i`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from podyard.cli.errors import InputError

_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[\w./-]+)
      | (?P<set_key>[\w./-]+)\s+(?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*))?
    )\s*(?:,|\Z)""",
    re.VERBOSE,
)


class Term(NamedTuple):
    """One condition. Operators: exists, absent, in, notin."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy it; as in Kubernetes, `notin` holds for a missing label."""
        if self.operator == "exists":
            return self.key in labels
        if self.operator == "absent":
            return self.key not in labels
        if self.operator == "in":
            return labels.get(self.key) in self.values
        return labels.get(self.key) not in self.values

    def __str__(self) -> str:
        if self.operator in ("exists", "absent"):
            return self.key if self.operator == "exists" else f"!{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'in' else '!='}{next(iter(self.values))}"
        return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"


class Selector(NamedTuple):
    """All terms must hold; none is everything."""

    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> "Selector":
        """Read a selector.

        :raises InputError: where it cannot be read
        """
        terms: list[Term] = []
        position = 0
        while position < len(text):
            found = _TERM.match(text, position)
            if found is None or found.end() == position:
                raise InputError(
                    f"selector {text!r}: cannot be read from {text[position:]!r}", "for example -l app=web,tier!=test"
                )
            terms.append(_term(found))
            position = found.end()
        return cls(tuple(terms))

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether `labels` satisfy every term."""
        return all(term.matches(labels) for term in self.terms)


def _term(found: re.Match[str]) -> Term:
    if found["absent"]:
        return Term(found["absent_key"], "absent")
    if found["set_op"]:
        values = frozenset(value.strip() for value in found["values"].split(",") if value.strip())
        return Term(found["set_key"], found["set_op"], values)
    if found["op"] is None:
        return Term(found["key"], "exists")
    return Term(found["key"], "notin" if found["op"] == "!=" else "in", frozenset({found["value"]}))
