"""What every cluster has from its first day, and what nobody may delete: an API server makes it when it
starts.

Source: kubernetes v1.36.2, pkg/controlplane/controller/systemnamespaces, pkg/registry/scheduling/rest
(AddSystemPriorityClasses); apiserver, pkg/admission/plugin/namespace/lifecycle.
"""

from collections.abc import Callable, Iterator
from typing import Final

import anyio
import structlog

from podyard.cluster.finalizing import NAMESPACES
from podyard.cluster.keys import ObjectKey
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.served import Served
from podyard.kube_api.writing import Options, Writer
from podyard.objects.admission import ALWAYS_THERE
from podyard.objects.documents import Document
from podyard.objects.priority import SYSTEM_CLASSES

WHO: Final = "kube_api"
AGAIN_S: Final = 5.0
"""Between two tries, while the api does not answer."""
_CLASSES: Final = "priorityclasses"


def documents() -> Iterator[tuple[str, Document]]:
    """All of it, with the resource of each."""
    for name in sorted(ALWAYS_THERE):
        yield NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name, one in sorted(SYSTEM_CLASSES.items()):
        yield (
            _CLASSES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": one.value,
                "description": one.description,
                "preemptionPolicy": one.preemption_policy,
            },
        )


async def make(
    writer: Writer,
    served: Callable[[str], Served],
    is_there: Callable[[ObjectKey], bool],
    log: structlog.stdlib.BoundLogger,
) -> None:
    """Make what is missing. Returns when all of it is there.

    :param served: the built-in resource of that name
    """
    for resource, document in documents():
        name: str = document["metadata"]["name"]
        while not is_there(ObjectKey(resource, "", name)):
            try:
                await writer.create(served(resource), document, Options(WHO))
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    break
                log.warning("not made yet", resource=resource, name=name, reason=error.message)
                await anyio.sleep(AGAIN_S)
