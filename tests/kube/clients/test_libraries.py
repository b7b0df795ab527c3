"""Client libraries do with a lab what they do with a cluster: programs of examples, each run by itself."""

import ast
import subprocess
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
EXAMPLE_S = 150


def examples() -> list[tuple[str, str]]:
    """Each program with the names in its list `EXAMPLES`."""
    found: list[tuple[str, str]] = []
    for path in PROGRAMS:
        for statement in ast.parse(path.read_text()).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id="EXAMPLES")], value=ast.List(elts=elements)):
                    found += [(path.name, one.id) for one in elements if isinstance(one, ast.Name)]
                case _:
                    pass
    return found


@pytest.mark.timeout(EXAMPLE_S + 60)
@pytest.mark.parametrize(("program", "example"), examples())
def test_a_library_does_what_it_does_elsewhere(
    program: str, example: str, client_python: Path, clients_lab: Path, tmp_path: Path
) -> None:
    path = Path(__file__).parent / "programs" / program
    done = subprocess.run(
        [client_python, path, clients_lab, example],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=EXAMPLE_S,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{program} {example}:\n{done.stdout}{done.stderr}", pytrace=False)
