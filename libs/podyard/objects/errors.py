"""What can be wrong with an object.

    ValueError
    └── ObjectError               what Kubernetes does not allow an object to be: the sender must change it
        ├── QuantityError         a text is no quantity
        ├── SelectorError         a label or node selector cannot be compiled
        ├── LabelTextError        a text is no label selector
        ├── UnknownKindError      no kind or resource is called so
        ├── ManifestError         a file: says source, document number and field path (manifests.py)
        └── AdmissionError        an object was refused: carries every fault found (admission.py)

All are permanent: the same input fails again.
"""

import msgspec


def placed(field: str, detail: str) -> str:
    """What is wrong, with where it is; `field` is empty for the whole."""
    return f"{field}: {detail}" if field else detail


class ObjectError(ValueError):
    """A fault of one object. `field` is a path such as `spec.containers[0].name`, empty for the object as a
    whole."""

    def __init__(self, field: str, detail: str) -> None:
        self.field = field
        self.detail = detail
        super().__init__(placed(field, detail))


class QuantityError(ObjectError):
    """A text is no quantity. `detail` is Kubernetes' own sentence. Source:
    apimachinery/pkg/api/resource/quantity.go."""

    def __init__(self, text: object, detail: str) -> None:
        self.text = text
        super().__init__("", detail)


class SelectorError(ObjectError):
    """A label or node selector that cannot be compiled: unknown operator, wrong number of values, a value
    that is no number."""


class UnknownKindError(ObjectError):
    """No kind or resource is called so. `detail` says what exists."""

    def __init__(self, detail: str, field: str = "kind") -> None:
        super().__init__(field, detail)


class ManifestError(ObjectError):
    """A file that cannot be applied. `document` counts from 1, empty documents included; 0 means the file as
    a whole.

    `line`: where the document, or the fault if the reader knows it, begins; 0 if unknown.
    """

    def __init__(self, source: str, document: int, field: str, detail: str, line: int = 0) -> None:
        self.source = source
        self.document = document
        self.line = line
        where = source
        if document:
            where += f": document {document}"
        if line:
            where += f" (line {line})"
        super().__init__(field, detail)
        self.args = (f"{where}: {placed(field, detail)}",)


class FieldFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of an object as the API server words it. `type` is the name of the constant, e.g.
    `FieldValueInvalid`."""

    field: str
    type: str
    detail: str

    def __str__(self) -> str:
        return placed(self.field, self.detail)


class AdmissionError(ObjectError):
    """An object was refused. `faults` holds all that was found, in document order, at least one."""

    def __init__(self, kind: str, name: str, faults: list[FieldFault]) -> None:
        self.kind = kind
        self.name = name
        self.faults = tuple(faults)
        listed = str(faults[0]) if len(faults) == 1 else "[" + ", ".join(map(str, faults)) + "]"
        super().__init__(faults[0].field, f'{kind} "{name}" is invalid: {listed}')

    def __str__(self) -> str:
        return self.detail


class LabelTextError(ObjectError):
    """A text is no label selector. The sentence is apimachinery's."""

    def __init__(self, sentence: str) -> None:
        super().__init__("", sentence)
