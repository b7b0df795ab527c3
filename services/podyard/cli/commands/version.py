"""`podyard version`."""

from importlib import metadata


def version() -> int:
    """Print Podyard's version.

    ```
    podyard version
    ```
    """
    print(f"podyard {metadata.version('podyard')}")
    return 0
