"""Gathering faults with their paths, so that a file's author sees all of them at once."""

from typing import Any, cast


class Faults:
    """Faults in the order in which they were found."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, path: str, detail: str) -> None:
        """Note one fault at `path`; an empty path is the file as a whole."""
        self.found.append(f"{path}: {detail}" if path else detail)


def mapping(value: Any, path: str, faults: Faults) -> dict[str, Any]:
    """`value` as a mapping; another type is a fault and becomes an empty one."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    faults.add(path, f"must be a mapping, is {type(value).__name__}")
    return {}


def items(value: Any) -> list[Any]:
    """`value` as a list: itself, or the only item of one."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]
