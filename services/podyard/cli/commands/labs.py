"""`podyard labs`: which labs run on this machine."""

from podyard.cli.options import JsonOutputOption


def labs(*, output: JsonOutputOption = "text") -> int:
    """List the labs that `podyard up` runs here: name, server, since when, which services, where their data
    is.

    Commands take a lab's name in the place of a server: `--nats NAME`, or $PODYARD_NATS_SERVERS. Without it
    they use the only lab that runs.

    ```
    podyard labs
    podyard get pods --nats staging
    podyard labs -o json
    ```
    """
    import os
    import sys

    from podyard.cli.lab import state
    from podyard.cli.render import lab as rendered
    from podyard.cli.render import plain
    from podyard.runtime import clock

    found = state.running(os.environ)
    if output == "json":
        print(plain.dump(found, "json"), end="")
    elif found:
        print("\n".join(rendered.running(found, clock.now())))
    else:
        sys.stderr.write("No lab runs here; `podyard up` starts one.\n")
    return 0
