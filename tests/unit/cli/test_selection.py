import pytest

from podyard.cli import selection
from podyard.cli.errors import InputError

LABELS = {"app": "web", "tier": "front", "example.com/x": "1"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=api", False),
        ("app!=api", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("app in (api, web)", True),
        ("app notin (api,web)", False),
        ("missing notin (a)", True),
        ("example.com/x=1,tier=front", True),
        ("example.com/x=1,tier=back", False),
        ("app=web, tier", True),
        ("example.com/x>0", True),
        ("app in (web,),tier", True),
    ],
)
def test_selectors_choose_as_kubectl_does(text, matches):
    assert selection.parse(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["=web", "app in web", "app=a b", "app in (a", "a,,b", "a=b,", "/=a", "a=b/c"])
def test_what_cannot_be_read_is_told(text):
    with pytest.raises(InputError, match="selector"):
        selection.parse(text)
