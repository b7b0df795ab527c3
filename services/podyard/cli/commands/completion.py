"""`podyard completion`: completion for the shell."""

import sys
from typing import Annotated, Literal

from cyclopts import Parameter


def completion(
    shell: Literal["bash", "zsh", "fish"],
    /,
    *,
    install: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Print the completion script for a shell, or install it where the shell finds it.

    ```
    podyard completion bash --install
    podyard completion zsh > ~/.zfunc/_podyard
    source <(podyard completion bash)
    ```

    :param shell: bash, zsh or fish.
    :param install: Write it to the usual place in the home directory and say where.
    """
    from podyard.cli import app

    built = app.build()
    if not install:
        sys.stdout.write(built.generate_completion(shell=shell))
        return 0
    path = built.install_completion(shell=shell, add_to_startup=False)
    print(f"installed {path}; open a new shell to use it")
    return 0
