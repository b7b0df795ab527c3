"""`podyard kubeconfig`: how kubectl gets into a lab."""

from podyard.cli.options import NatsOption


def kubeconfig(*, nats: NatsOption = "") -> int:
    """Print the kubeconfig of a lab, by which kubectl, helm and client libraries work with it.

    It holds a token with which one may do everything in the lab.

    ```
    podyard kubeconfig > ~/.kube/podyard
    KUBECONFIG=~/.kube/podyard kubectl get pods -A
    kubectl --kubeconfig <(podyard kubeconfig) get nodes
    ```
    """
    import os
    from pathlib import Path

    from podyard.cli import session
    from podyard.cli.errors import CliError

    lab = session.lab(nats, os.environ)
    if lab is None:
        raise CliError("no lab runs here", "start one with `podyard up`")
    if not lab.kubeconfig:
        raise CliError(
            "the lab serves no Kubernetes API", "start it with kube_api among its services, as `podyard up` does"
        )
    print(Path(lab.kubeconfig).read_text(), end="")
    return 0
