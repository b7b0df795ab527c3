"""`evict`: end pods if their disruption budgets allow it."""

from collections.abc import Callable

import structlog

from podyard.api import eviction, naming, results
from podyard.api.eviction import Wanted
from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cluster.errors import ClusterError
from podyard.cluster.intents import Author
from podyard.framework.status import described
from podyard.objects.errors import ObjectError
from podyard.proto import subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import EvictRequest, ObjectResult
from podyard.telemetry.conventions import EVICT_SPAN, pod_attributes
from podyard.telemetry.tracing import Spans


async def evict(
    bus: Bus,
    spans: Spans,
    request: EvictRequest,
    author: Author,
    now: Callable[[], float],
    log: structlog.stdlib.BoundLogger,
) -> tuple[ObjectResult, ...]:
    """Carry out a request, one pod after the other, since pods may share a budget; results in its order.

    :param now: seconds since 1970, UTC
    """
    return tuple([await _evict_one(bus, spans, request, reference, author, now, log) for reference in request.pods])


async def _evict_one(
    bus: Bus,
    spans: Spans,
    request: EvictRequest,
    reference: ObjectRef,
    author: Author,
    now: Callable[[], float],
    log: structlog.stdlib.BoundLogger,
) -> ObjectResult:
    try:
        key = naming.key_of(reference)
        if key.resource != subjects.PODS:
            raise ObjectError("resource", f"only pods can be evicted, not {key.resource}: use delete")
    except ObjectError as error:
        return results.failure(error, reference)
    started, trace = now(), spans.kept(spans.child(author.trace))
    wanted = Wanted(key, reference.uid, request.grace_period_s, request.dry_run, request.until)
    error, result = "", None
    try:
        done = await eviction.evict(bus, wanted, author._replace(trace=trace), now)
    except (ClusterError, ObjectError, MessageError, BusError) as problem:
        error, result = str(problem), results.failure(problem, key)
    except Exception as problem:  # the boundary of one pod: what is stored of it may be anything
        log.error("an eviction failed", pod=f"{key.namespace}/{key.name}", exc_info=problem)
        told = f"the api failed at it, look into its log: {described(problem)}"
        error, result = told, results.failure(ClusterError(told), key)
    else:
        result = results.evicted(key, done.uid, done.sequence, done.budget)
    spans.emit(
        EVICT_SPAN,
        trace=trace,
        parent=author.trace,
        start=started,
        end=now(),
        attributes={
            **pod_attributes(key.namespace, key.name),
            "podyard.who": author.who,
            "podyard.why": author.why,
            "podyard.dry_run": request.dry_run,
        },
        error=error,
        keep=True,
    )
    return result
