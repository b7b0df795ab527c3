"""Label selectors in text form: `a=b, c in (d, e), !f, g notin (h), i > 5`, read and written.

Source: apimachinery v0.36, pkg/labels/selector.go (Parse, String); the errors are worded as there.
"""

from typing import Final

from podyard.objects import names, selectors
from podyard.objects.errors import LabelTextError
from podyard.objects.selectors import Requirement, Selector

_SYMBOLS: Final = ("==", "!=", "=", "!", "(", ")", ",", ">", "<")
_SPACE: Final = " \t\r\n"
_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_END: Final = ""


def parse(text: str) -> Selector:
    """The selector that `text` spells; the empty text selects everything.

    :raises LabelTextError: if it spells none
    """
    requirements = _Parser(_tokens(text)).requirements()
    return Selector(tuple(sorted(requirements, key=lambda one: one.key))) if requirements else selectors.EVERYTHING


def text_of(selector: Selector) -> str:
    """The selector in text form; empty for the one that selects everything."""
    return ",".join(map(_requirement_text, selector.requirements))


def _requirement_text(requirement: Requirement) -> str:
    values = sorted(requirement.values)
    match requirement.operator:
        case selectors.EXISTS:
            return requirement.key
        case selectors.DOES_NOT_EXIST:
            return f"!{requirement.key}"
        case selectors.GT | selectors.LT as operator:
            return f"{requirement.key}{'>' if operator == selectors.GT else '<'}{values[0]}"
        case selectors.IN if len(values) == 1:
            return f"{requirement.key}={values[0]}"
        case selectors.NOT_IN if len(values) == 1:
            return f"{requirement.key}!={values[0]}"
        case operator:
            return f"{requirement.key} {operator.lower()} ({','.join(values)})"


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    word = ""
    at = 0
    while at < len(text):
        symbol = next((symbol for symbol in _SYMBOLS if text.startswith(symbol, at)), None)
        if symbol is None and text[at] not in _SPACE:
            word += text[at]
            at += 1
            continue
        tokens += [word] if word else []
        tokens += [symbol] if symbol is not None else []
        word = ""
        at += 1 if symbol is None else len(symbol)
    return [*tokens, word] if word else tokens


class _Parser:
    """One pass over the tokens; the end reads as an empty token."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def requirements(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while (token := self._peek()) != _END:
            if token in _SYMBOLS and token != "!":
                raise LabelTextError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except LabelTextError as error:
                raise LabelTextError(f"unable to parse requirement: {error}") from error
            after = self._next()
            if after == _END:
                break
            if after != ",":
                raise LabelTextError(f"found '{after}', expected: ',' or 'end of string'")
            if self._peek() != "!" and (self._peek() in _SYMBOLS or self._peek() == _END):
                raise LabelTextError(f"found '{self._peek()}', expected: identifier after ','")
        return requirements

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if key in _SYMBOLS or key == _END:
            raise LabelTextError(f"found '{key}', expected: identifier")
        if fault := names.qualified_fault(key):
            raise LabelTextError(f'<nil>: Invalid value: "{key}": {fault}')
        if absent:
            return Requirement(key, selectors.DOES_NOT_EXIST)
        if self._peek() in (_END, ","):
            return Requirement(key, selectors.EXISTS)
        return self._with_values(key, self._next())

    def _with_values(self, key: str, operator: str) -> Requirement:
        match operator:
            case "in":
                return _checked(Requirement(key, selectors.IN, self._set()))
            case "notin":
                return _checked(Requirement(key, selectors.NOT_IN, self._set()))
            case "=" | "==":
                return _checked(Requirement(key, selectors.IN, frozenset({self._value()})))
            case "!=":
                return _checked(Requirement(key, selectors.NOT_IN, frozenset({self._value()})))
            case ">" | "<":
                value = self._value()
                bound = selectors.whole_number(value)
                if bound is None:
                    raise LabelTextError(
                        f"values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    )
                name = selectors.GT if operator == ">" else selectors.LT
                return _checked(Requirement(key, name, frozenset({value}), bound))
            case _:
                raise LabelTextError(f"found '{operator}', expected: {_OPERATORS}")

    def _value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise LabelTextError(f"found '{value}', expected: identifier")
        return value

    def _set(self) -> frozenset[str]:
        if (opening := self._next()) != "(":
            raise LabelTextError(f"found '{opening}' expected: '('")
        values: set[str] = set()
        while True:
            token = self._next()
            if token in (",", ")"):
                values.add("")
            elif token in _SYMBOLS or token == _END:
                raise LabelTextError(f"found '{token}', expected: ',', ')' or identifier")
            else:
                values.add(token)
                token = self._next()
            if token == ")":
                return frozenset(values)
            if token != ",":
                raise LabelTextError(f"found '{token}', expected: ',' or ')'")


def _checked(requirement: Requirement) -> Requirement:
    """Source: labels.NewRequirement."""
    for at, value in enumerate(sorted(requirement.values)):
        if fault := names.label_value_fault(value):
            raise LabelTextError(f'values[{at}][{requirement.key}]: Invalid value: "{value}": {fault}')
    return requirement
