"""Custom kinds by the names of their definitions."""

import pytest

from podyard.bus import Bus
from podyard.cli import defined_kinds
from tests.support import stored


async def defined(bus: Bus) -> None:
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]}
    versions = [
        {"name": "v1", "served": True, "storage": True},
        {"name": "v1beta1", "served": True, "storage": False},
        {"name": "v1alpha1", "served": False, "storage": False},
    ]
    document = {
        "metadata": {"name": "widgets.e.com", "uid": "u1"},
        "spec": {"group": "e.com", "scope": "Namespaced", "names": names, "versions": versions},
    }
    await bus.publish(stored.version("customresourcedefinitions", document))


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        (("widgets",), ("widgets.v1.e.com,widgets.v1beta1.e.com",)),
        (("Widget",), ("widgets.v1.e.com,widgets.v1beta1.e.com",)),
        (("pods,wd",), ("pods,widgets.v1.e.com,widgets.v1beta1.e.com",)),
        (("widgets.e.com", "a"), ("widgets.v1.e.com", "a")),
        (("widget/a", "pod/b"), ("widgets.v1.e.com/a", "pod/b")),
        (("gadgets",), ("gadgets",)),
    ],
)
async def test_a_definition_names_its_kind(bus: Bus, words: tuple[str, ...], spelled: tuple[str, ...]) -> None:
    await defined(bus)
    kind, names = await defined_kinds.spelled(bus, words[0], words[1:])
    assert (kind, *names) == spelled


@pytest.mark.parametrize(
    ("words", "known"),
    [
        (("pods",), True),
        (("pods,cm", "a"), True),
        (("pod/a", "role/b"), True),
        (("widgets.v1.e.com",), True),
        (("pods,widgets",), False),
        (("pod/a", "widget/b"), False),
    ],
)
def test_other_kinds_need_no_definition(words: tuple[str, ...], known: bool) -> None:
    assert defined_kinds.is_known(words) is known
