"""Settings of the services."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from podyard.cli import reference_flags, services
from podyard.cli.commands import run
from podyard.cli.reference_flags import Taken
from podyard.runtime import settings
from podyard.runtime.settings import ServiceSettings
from tools.reference.markdown import page, table

ABOUT: Final = """Every setting of every service: its path in the options file, its environment variable, the
flag of `podyard run` if it has one (any other: `--set PATH=VALUE`), type, default and meaning. Later ones
win: defaults, the options file (`--config`), variables, flags. All that is wrong is told at once.
`podyard run NAME --write-config-to FILE` writes what is in force."""

HEAD: Final = ("setting", "type", "default", "variable and flag", "what it is")


class Setting(NamedTuple):
    """One of them."""

    path: str
    type: str
    default: str
    meaning: str


def made() -> str:
    """The page."""
    parts = ["## All services", _table(ServiceSettings, "", None)]
    for name in services.NAMES:
        definition = services.definition(name)
        parts += [f"## {name}", _about(definition.settings_type), _table(definition.settings_type, f"{name}.", name)]
    return page("Settings", " ".join(ABOUT.split()), parts)


def _about(section: type[msgspec.Struct]) -> str:
    return " ".join((inspect.getdoc(section) or "").split())


def _table(section: type[msgspec.Struct], prefix: str, service: str | None) -> str:
    return table(HEAD, (_row(one, service) for one in of(section, prefix)))


def _row(one: Setting, service: str | None) -> tuple[str, ...]:
    variable = f"{settings.PREFIX}_{one.path.replace('.', '_').upper()}"
    asked = [f"`{variable}`", *(f"`--{flag}`" for flag in flags(one.path, service))]
    return f"`{one.path}`", one.type, one.default, ", ".join(asked), one.meaning


def of(section: type[msgspec.Struct], prefix: str = "") -> Iterator[Setting]:
    """The settings of a Struct and of the topics in it, by path, in their order."""
    meanings = docstrings(section)
    for field in msgspec.structs.fields(section):
        path = f"{prefix}{field.name}"
        kind: Any = field.type
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from of(kind, f"{path}.")
        else:
            yield Setting(path, worded(types.type_info(kind)), _default(field), meanings.get(field.name, ""))


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()  # type: ignore[operator]
    return f"`{json.dumps(msgspec.to_builtins(value), ensure_ascii=False)}`"


@cache
def docstrings(section: type[msgspec.Struct]) -> Mapping[str, str]:
    """What stands below each field of a Struct, also of those that it inherits."""
    found: dict[str, str] = {}
    for one in reversed(section.__mro__):
        if issubclass(one, msgspec.Struct) and one is not msgspec.Struct:
            found |= _below_fields(one)
    return found


def _below_fields(section: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    [definition] = ast.parse(inspect.getsource(section)).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as said)),
            ):
                yield name, " ".join(said.split())
            case _:
                pass


def worded(kind: types.Type) -> str:
    """A type in words, with its bounds."""
    match kind:
        case types.IntType() | types.FloatType():
            return ("whole number" if isinstance(kind, types.IntType) else "number") + _bounds(kind)
        case types.StrType():
            return "text"
        case types.BoolType():
            return "true or false"
        case types.NoneType():
            return "null"
        case types.LiteralType():
            return ", ".join(f"`{value}`" for value in kind.values)
        case types.UnionType():
            return " or ".join(map(worded, kind.types))
        case types.VarTupleType() | types.ListType():
            return f"list of {worded(kind.item_type)}"
        case types.DictType():
            return f"map of {worded(kind.key_type)} to {worded(kind.value_type)}"
        case types.StructType():
            return "{" + ", ".join(f"{field.encode_name}: {worded(field.type)}" for field in kind.fields) + "}"
        case types.Metadata():
            return worded(kind.type)
        case _:
            raise TypeError(f"no words for {kind}")


def _bounds(kind: Any) -> str:
    signs = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
    found = [f"{sign} {bound:g}" for name, sign in signs if (bound := getattr(kind, name)) is not None]
    return f" {', '.join(found)}" if found else ""


def flags(path: str, service: str | None) -> list[str]:
    """Flags of `podyard run` that set it, the service's own name first."""
    own = [flag for flag, setting in run.SETTINGS.items() if setting == path]
    theirs = [
        name
        for name, flag in reference_flags.FLAGS.items()
        if isinstance(flag, Taken)
        and flag.setting.replace("SERVICE", service or "SERVICE") == path
        and (service is None or service in flag.services)
    ]
    return [*own, *theirs]
