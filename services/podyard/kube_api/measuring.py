"""Requests for `metrics.k8s.io`, out of what agents say that their nodes use."""

from collections.abc import Callable, Mapping

from podyard.cluster.keys import ObjectKey
from podyard.cluster.usages import Usages
from podyard.kube_api.core import media, metering, selecting, tabling
from podyard.kube_api.core.media import Page
from podyard.kube_api.core.paths import Asked
from podyard.kube_api.core.served import Served
from podyard.kube_api.core.shelves import Scope
from podyard.kube_api.core.store import Store

Query = Mapping[str, list[str]]


class Measuring:
    """Answers requests. Owned by the service's event loop."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        """:param now: seconds since 1970, UTC"""
        self._now = now
        self._usages = Usages()
        self._metering = metering.Metering(store, self._usages)

    def hear(self, subject: str, payload: bytes, trace: str) -> None:
        """An agent says what its node uses.

        :raises MessageError: if it cannot be used
        """
        del trace
        self._usages.take(subject, payload, self._now())

    def page(self, served: Served, asked: Asked, query: Query, accept: str) -> Page:
        """What one object uses, or all that are meant.

        :raises ApiError: it is not there, nobody says what it uses, or the parameters are wrong
        """
        now, (wanted, told) = self._now(), media.form(accept)
        include = _first(query, "includeObject")
        tabling.check_include(include)
        if asked.name:
            found = self._metering.one(served, ObjectKey(served.resource, asked.namespace, asked.name), now)
            return Page(told, metering.one(served, found, wanted, include, now))
        selection = selecting.parse(
            _first(query, "labelSelector"),
            _first(query, "fieldSelector"),
            kind=metering.KINDS[served.resource],
            api_version=served.api_version,
        )
        several = self._metering.several(Scope(served.resource, asked.namespace), selection, now)
        return Page(told, metering.several(served, several, wanted, include, now))


def _first(query: Query, name: str) -> str:
    return query.get(name, [""])[0]
