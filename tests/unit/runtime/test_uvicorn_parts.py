"""uvicorn's parts are loaded without its command line, and nobody else is left with half a package."""

import subprocess
import sys

CODE = """
import sys
from podyard.runtime import uvicorn_parts
print([name for name in ("uvicorn", "uvicorn.main", "click", "multiprocessing") if name in sys.modules])
import uvicorn
print(uvicorn.Config is uvicorn_parts.Config, callable(uvicorn.run))
"""
FIRST = "import uvicorn\nfrom podyard.runtime import uvicorn_parts\nprint(uvicorn.Config is uvicorn_parts.Config)"


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_command_line_is_not_loaded_and_who_wants_it_gets_it() -> None:
    assert printed(CODE) == "[]\nTrue True\n"


def test_who_has_loaded_all_of_it_keeps_it() -> None:
    assert printed(FIRST) == "True\n"
