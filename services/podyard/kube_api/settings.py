"""What can be set of the Kubernetes API: section `kube_api` of the options file, `PODYARD_KUBE_API_*`."""

from typing import Annotated, ClassVar

from msgspec import Meta

from podyard.runtime.settings import HttpsSettings


class KubeApiSettings(HttpsSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it is served, and by what those are known who ask."""

    section: ClassVar[str] = "kube_api"

    port: Annotated[int, Meta(ge=0, le=65535)] = 6443
    """Of HTTPS, as kube-apiserver's; 0: any free one, which the log tells."""
    bind_address: str = "127.0.0.1"
    """An IP address of this host; `0.0.0.0` and `::` are all of them."""
    readers: tuple[str, ...] = ("podyard:readers",)
    """Groups whose members may read everything but values of Secrets, and write nothing."""
    people: tuple[str, ...] = ("system:masters", "podyard:people")
    """Groups whose members may read and write everything."""
    connections: Annotated[int, Meta(ge=1, le=65536)] = 2048
    """At once: a watch has one of its own, unless its client speaks HTTP/2, which is not served."""
    request_s: Annotated[float, Meta(gt=0, le=3600)] = 60.0
    """Seconds that a request other than a watch may take. Source: the flag --request-timeout of
    kube-apiserver."""
    watch_s: Annotated[float, Meta(gt=0, le=86400)] = 1800.0
    """Seconds after which a watch that names no time of its own ends, at the earliest; at the latest after
    twice that. Source: the flag --min-request-timeout of kube-apiserver."""
    history_bytes: Annotated[int, Meta(ge=1_048_576)] = 128 * 1024 * 1024
    """Of changes that are kept, so that a watch can go on where it was; above it the oldest go, and a watch
    from there is answered 410 Gone."""
