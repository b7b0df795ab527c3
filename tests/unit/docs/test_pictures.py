"""The pictures of pages: small, whole, and none that fetches something from elsewhere."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.jaeger import pictures
from tests.jaeger.pictures import FOLDER, LARGEST_BYTES, ROOT

PICTURES = sorted(FOLDER.iterdir())
ELSEWHERE = re.compile(r"url\(\s*['\"]?http|href=|@import|<script")


def test_the_readme_shows_all_of_them() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(docs/pictures/([\w.]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(shown) >= 2
    assert sorted(shown) == [picture.name for picture in PICTURES]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small_and_whole(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST_BYTES
    assert "NodeResourcesFit" in "".join(ElementTree.fromstring(text).itertext()), "it shows why the pod waited"
    assert not ELSEWHERE.search(text)
    assert f"podyard&#160;{picture.stem}" in text


def test_what_a_terminal_shows_is_drawn_with_its_colours() -> None:
    drawn = pictures.drawn("\x1b[1mbig\x1b[0m \x1b[32mRunning\x1b[0m\nnode-4\n", "podyard get")
    words = "".join(ElementTree.fromstring(drawn).itertext())
    assert ["big" in words, "Running" in words, "node-4" in words] == [True] * 3
    assert "font-weight: bold" in drawn
    assert not ELSEWHERE.search(drawn)
