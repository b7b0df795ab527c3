"""`podyard checks`: what to do when a check is red."""

from typing import Annotated

from cyclopts import Parameter


def checks(name: Annotated[str, Parameter(show_default=False)] = "", /) -> int:
    """Say what a check of /readyz means and what to do when it is red; without a name, which there are.

    It is the page docs/checks.md, which goes with every installation. No server is asked.

    ```
    podyard checks
    podyard checks nats
    ```

    :param name: As it stands after `[-]` on /readyz, or before the colon in `podyard top`.
    """
    from podyard.cli import checks_page
    from podyard.cli.render import page

    page.show(checks_page.section(name) if name else checks_page.contents())
    return 0
