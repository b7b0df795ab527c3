"""An object in the version that is asked for, and in the one that is stored. Pure.

Objects of custom kinds differ in their apiVersion alone: webhooks that convert are not called, and what they
would convert is not served.
"""

from podyard.kube_api.core import autoscalers, event_forms
from podyard.kube_api.core.served import Served
from podyard.objects.documents import Document


def converts(served: Served) -> bool:
    """Whether what is shown differs from what is stored in more than the apiVersion."""
    return _is_autoscaler(served) or served.api_version == event_forms.NEW


def _is_autoscaler(served: Served) -> bool:
    return served.stored is not None and served.stored.resource == autoscalers.RESOURCE


def shown(document: Document, served: Served) -> Document:
    """A stored object as it is shown in a version."""
    if served.is_events:
        return event_forms.shown(document, served.api_version)
    if _is_autoscaler(served):
        return autoscalers.converted(document, served.api_version)
    if served.custom:
        return {**document, "apiVersion": served.api_version}
    return document


def stored(document: Document, served: Served) -> Document:
    """An object of a version as it is stored; one of a custom kind has its place found by the api."""
    return autoscalers.converted(document, autoscalers.V2) if _is_autoscaler(served) else document
