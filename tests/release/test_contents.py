"""What wheel and sdist carry: all of the product, nothing of its tests."""

from tests.memory_nats import MemoryServer
from tests.release import archives
from tests.release.archives import PACKAGE_ROOTS, Release

READ_BY_PEOPLE = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"}
FROM_DOCS = {"podyard/cli/checks.md"}
"""Pages that a command shows."""
ADDED_BY_THE_BUILD = {"PKG-INFO", ".gitignore", "pyproject.toml"}
"""Not in the folders that we name: the metadata, and what hatchling needs to build the wheel out of the
sdist.
"""


def test_the_wheel_is_the_packages_with_their_data_files_and_nothing_else(release: Release) -> None:
    sources = {path for path in archives.tracked(*PACKAGE_ROOTS) if path.split("/")[1] == "podyard"}
    assert any(path.endswith("manifests/trainer.yaml") for path in sources)
    assert archives.files_of_wheel(release.wheel) == {path.partition("/")[2] for path in sources} | FROM_DOCS


def test_neither_carries_benchmarks(release: Release) -> None:
    assert "bench/podyard/bench/basic.py" in archives.tracked("bench")
    carried = archives.files_of_wheel(release.wheel) | archives.files_of_sdist(release.sdist)
    assert [path for path in carried if "podyard/bench/" in path] == []


def test_the_wheel_has_no_nats_server_in_memory(release: Release) -> None:
    server = f"class {MemoryServer.__name__}"
    assert [path for path, text in archives.sources_of_wheel(release.wheel).items() if server in text] == []


def test_the_sdist_is_sources_documents_and_examples_without_tests(release: Release) -> None:
    wanted = archives.tracked(*PACKAGE_ROOTS, "docs", "examples") | READ_BY_PEOPLE | ADDED_BY_THE_BUILD
    tests = {path for path in wanted if path.rpartition("/")[2].startswith("test_")}
    assert tests, "examples/ has tests that stay here"
    assert archives.files_of_sdist(release.sdist) == wanted - tests
