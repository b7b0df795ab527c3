"""The lab that the story is played in."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources

from podyard.cli.lab import plan
from podyard.cli.lab.lab import LabOptions


@contextmanager
def options(data_dir: str, *, announce: bool = False) -> Generator[LabOptions]:
    """How the story's lab is run; its files are there while the block runs.

    :param data_dir: empty for a temporary directory
    :param announce: whether other commands shall find this lab
    """
    with resources.as_file(resources.files("podyard.cli.demo")) as files:
        yield LabOptions(
            services=plan.parse(""),
            data_dir=data_dir,
            config=str(files / "options.yaml"),
            environment={"PODYARD_DESCHEDULER_POLICY": str(files / "manifests" / "descheduler-policy.yaml")},
            announce=announce,
        )
