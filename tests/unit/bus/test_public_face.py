import importlib
import types

import podyard.bus as package


def test_all_names_exist_and_are_sorted():
    assert all(hasattr(package, name) for name in package.__all__)
    assert sorted(package.__all__) == package.__all__


def test_all_names_everything_that_the_package_offers():
    offered = {
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert offered == set(package.__all__)


def test_every_error_of_the_drawn_tree_is_offered_and_stands_where_it_is_drawn():
    errors = importlib.import_module("podyard.bus.errors")
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        stem = line.lstrip(" │├└─")
        word = stem.split(" ")[0]
        if word.isidentifier() and hasattr(errors, word):
            drawn.append((len(line) - len(stem), word))
    assert len(drawn) >= 18
    path: list[tuple[int, str]] = []
    for depth, name in drawn:
        while path and path[-1][0] >= depth:
            path.pop()
        parent = getattr(errors, path[-1][1]) if path else Exception
        assert getattr(errors, name).__bases__[0] is parent or name == "EmbeddedServerError", name
        assert hasattr(package, name), name
        path.append((depth, name))
