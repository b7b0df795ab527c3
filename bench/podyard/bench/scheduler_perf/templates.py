"""The part of Go's text/template that files of objects use: `{{.Index}}`, `{{.Count}}`, and calls of the nine
functions that the reference gives them, also in parentheses, with white space trimmed by `{{-` and `-}}`.

Source: kubernetes v1.36.2, test/integration/scheduler_perf/operations.go, getTemplateFuncs.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from podyard.cli.errors import InputError

Value: TypeAlias = int | float
ACTION: Final = re.compile(r"\s*{{-\s(?P<left>.*?)(?:\s-}}\s*|}})|{{(?P<plain>.*?)(?:\s-}}\s*|}})", re.DOTALL)
TOKEN: Final = re.compile(r"\s*(?:(?P<field>\.\w+)|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Za-z_]\w*)|(?P<sign>[()]))")
FIELDS: Final = ("Index", "Count")
MOST_NESTED: Final = 32


def _int(function: Callable[..., float]) -> Callable[..., Value]:
    return lambda *numbers: int(function(*numbers))


def _mod(one: Value, other: Value) -> float:
    return math.fmod(int(one), int(other))


def _sum(*numbers: Value) -> float:
    return float(sum(numbers))


def _product(*numbers: Value) -> float:
    return float(math.prod(numbers))


def _less(one: Value, other: Value) -> float:
    return float(one - other)


def _quotient(one: Value, other: Value) -> float:
    return one / other


FUNCTIONS: Final[Mapping[str, tuple[Callable[..., Value], int | None]]] = {
    "AddFloat": (_sum, None),
    "AddInt": (_int(_sum), None),
    "DivideFloat": (_quotient, 2),
    "DivideInt": (_int(_quotient), 2),
    "Mod": (_int(_mod), 2),
    "MultiplyFloat": (_product, None),
    "MultiplyInt": (_int(_product), None),
    "SubtractFloat": (_less, 2),
    "SubtractInt": (_int(_less), 2),
}
"""By name, with how many arguments they take; None: any number."""


class Call(NamedTuple):
    """A function with its arguments."""

    name: str
    arguments: "tuple[Expression, ...]"


class Field(NamedTuple):
    """`.Index` or `.Count`."""

    name: str


Expression: TypeAlias = Call | Field | int | float


class Template:
    """A file's text, with what stands in braces read."""

    def __init__(self, source: str, text: str) -> None:
        """
        :param source: what errors call the file
        :raises InputError: it has what is not understood; says in which line
        """
        self.source = source
        self._parts: list[str | tuple[Expression, int]] = []
        at = 0
        for found in ACTION.finditer(text):
            self._parts.append(text[at : found.start()])
            line = text.count("\n", 0, found.end()) + 1
            inner = found["left"] if found["left"] is not None else found["plain"]
            self._parts.append((_Parser(source, line, inner).whole(), line))
            at = found.end()
        rest = text[at:]
        if "{{" in rest:
            line = text.count("\n", 0, at + rest.index("{{")) + 1
            raise InputError(f"{source}:{line}: {{{{ without its }}}}")
        self._parts.append(rest)

    @property
    def varies(self) -> bool:
        """Whether its objects differ from each other."""
        return len(self._parts) > 1

    def render(self, index: int, count: int) -> str:
        """The text for one object.

        :raises InputError: a division by zero
        """
        return "".join(
            part if isinstance(part, str) else _shown(self._value(*part, {"Index": index, "Count": count}))
            for part in self._parts
        )

    def _value(self, expression: Expression, line: int, given: Mapping[str, int]) -> Value:
        match expression:
            case Field(name=name):
                return given[name]
            case Call(name=name, arguments=arguments):
                numbers = [self._value(one, line, given) for one in arguments]
                try:
                    return FUNCTIONS[name][0](*numbers)
                except (ZeroDivisionError, OverflowError, ValueError) as error:
                    raise InputError(f"{self.source}:{line}: {name} of {numbers}: {error}") from error
            case _:
                return expression


class _Parser:
    """Reads what stands between two pairs of braces."""

    def __init__(self, source: str, line: int, text: str) -> None:
        self._where = f"{source}:{line}: {{{{{text}}}}}"
        self._tokens = list(self._split(text))
        self._at = 0

    def _split(self, text: str) -> Iterator[re.Match[str]]:
        at, text = 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                raise self._fault()
            yield found
            at = found.end()

    def whole(self) -> Expression:
        """All of it, which is one expression."""
        expression = self._call(0)
        if self._at != len(self._tokens):
            raise self._fault()
        return expression

    def _call(self, depth: int) -> Expression:
        if depth > MOST_NESTED:
            raise self._fault()
        token = self._next()
        if token["word"] is None:
            self._at -= 1
            return self._argument(depth)
        name = token["word"]
        if name not in FUNCTIONS:
            raise self._fault()
        arguments: list[Expression] = []
        while self._at < len(self._tokens) and self._tokens[self._at]["sign"] != ")":
            arguments.append(self._argument(depth))
        wanted = FUNCTIONS[name][1]
        if not arguments or wanted not in (None, len(arguments)):
            raise self._fault()
        return Call(name, tuple(arguments))

    def _argument(self, depth: int) -> Expression:
        token = self._next()
        if token["field"] is not None and token["field"][1:] in FIELDS:
            return Field(token["field"][1:])
        if token["number"] is not None:
            return float(token["number"]) if "." in token["number"] else int(token["number"])
        if token["sign"] == "(":
            inner = self._call(depth + 1)
            if self._next()["sign"] != ")":
                raise self._fault()
            return inner
        raise self._fault()

    def _next(self) -> re.Match[str]:
        if self._at >= len(self._tokens):
            raise self._fault()
        self._at += 1
        return self._tokens[self._at - 1]

    def _fault(self) -> InputError:
        functions = ", ".join(FUNCTIONS)
        return InputError(
            f"{self._where}: not understood", f"there are .Index, .Count, numbers, parentheses, and {functions}"
        )


def _shown(value: Value) -> str:
    """As Go prints a number."""
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
