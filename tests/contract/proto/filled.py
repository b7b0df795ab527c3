"""Messages made from their types: one with every field set, and a Hypothesis strategy for all that are
valid.
"""

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

RAW = b'{"kind":"Pod","metadata":{"name":"a"}}'


def full(type_: inspect.Type, name: str = "x") -> Any:
    """A JSON-able value of `type_` with every field set to something that is not its default."""
    match type_:
        case inspect.StructType(cls=cls):
            if cls is msgspec.Raw:
                return msgspec.Raw(RAW)
            return cls(**{field.name: full(field.type, field.encode_name) for field in type_.fields})
        case inspect.Metadata(type=inner):
            return full(inner, name)
        case inspect.RawType():
            return msgspec.Raw(RAW)
        case inspect.UnionType(types=types):
            return full(next(one for one in types if not isinstance(one, inspect.NoneType)), name)
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.EnumType(cls=cls):
            return max(cls)
        case inspect.BoolType():
            return True
        case inspect.IntType(ge=ge, le=le):
            return min(7 if ge is None else max(7, ge), 7 if le is None else le)
        case inspect.FloatType():
            return 1.5
        case inspect.StrType():
            return f"{name}-é"
        case inspect.BytesType():
            return b"\x00\xff"
        case inspect.VarTupleType(item_type=item):
            return (full(item, name),)
        case inspect.DictType(value_type=value):
            return {"a.b/c": full(value, name)}
    raise TypeError(f"no example for {type_}")


def strategy(type_: inspect.Type) -> st.SearchStrategy[Any]:
    """Every valid value of `type_`, bounded in size."""
    match type_:
        case inspect.StructType(cls=cls, fields=fields):
            return st.fixed_dictionaries({field.name: strategy(field.type) for field in fields}).map(
                lambda values: cls(**values)
            )
        case inspect.Metadata(type=inner):
            return strategy(inner)
        case inspect.RawType():
            return st.sampled_from([b"null", RAW, b'{"a":[1,2.5,"\\u00e9"]}']).map(msgspec.Raw)
        case inspect.UnionType(types=types):
            return st.one_of([strategy(one) for one in types])
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=ge, le=le):
            return st.integers(-(2**63) if ge is None else ge, 2**63 - 1 if le is None else le)
        case inspect.FloatType(ge=ge, le=le):
            return st.floats(ge, le, allow_nan=False, allow_infinity=False)
        case inspect.StrType(min_length=least, max_length=most):
            return st.text(min_size=least or 0, max_size=min(most or 12, 12))
        case inspect.BytesType():
            return st.binary(max_size=12)
        case inspect.VarTupleType(item_type=item, min_length=least):
            return st.lists(strategy(item), min_size=least or 0, max_size=(least or 0) + 2).map(tuple)
        case inspect.DictType(value_type=value):
            return st.dictionaries(st.text(max_size=8), strategy(value), max_size=2)
    raise TypeError(f"no strategy for {type_}")
