"""How objects are written."""

import json

from podyard.cluster.intents import Stored
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.forms import Bodies
from podyard.kube_api.core.items import Given, Item


def item(number: int) -> Item:
    document = {"metadata": {"name": f"c-{number}"}, "data": {"x": "y" * 1000}}
    key = ObjectKey("configmaps", "default", f"c-{number}")
    return Item(f"default/c-{number}", Given(key, Stored(number, json.dumps(document).encode(), False)), number)


def test_encoded_objects_take_no_more_than_they_may() -> None:
    bodies = Bodies(20_000)
    written = [bodies.of(item(number)) for number in range(1, 100)]
    assert json.loads(b"{" + written[0])["metadata"] == {"name": "c-1", "resourceVersion": "1"}
    assert 0 < bodies.held <= 20_000


def test_an_object_that_is_kept_is_not_written_again() -> None:
    bodies, one = Bodies(), item(1)
    assert bodies.of(one) is bodies.of(one)
