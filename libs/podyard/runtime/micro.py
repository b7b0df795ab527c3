"""The NATS micro service description: `nats micro ls|info|stats` finds every service without registration.

Source of the formats: NATS ADR-32. Every instance answers `$SRV.PING|INFO|STATS`, `....<name>` and
`....<name>.<id>`.
"""

import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podyard.runtime import clock

if TYPE_CHECKING:
    from podyard.bus.connection import Bus, Request, Subscription
    from podyard.bus.services import Handler, Later, Prompt

VERBS: Final = ("PING", "INFO", "STATS")
QUEUE_GROUP_OF_ONE: Final = ""


class Endpoint:
    """One subject that a service answers, with what happened on it. Owned by the event loop."""

    def __init__(self, name: str, subject: str, queue_group: str) -> None:
        self.name = name
        self.subject = subject
        self.queue_group = queue_group
        self.requests = 0
        self.errors = 0
        self.last_error = ""
        self.processing_ns = 0

    @contextmanager
    def handling(self) -> Generator[None]:
        """What takes time and may fail within counts."""
        started = time.perf_counter_ns()
        try:
            yield
        except Exception as error:
            self.errors += 1
            self.last_error = f"{type(error).__name__}: {error}"[:200]
            raise
        finally:
            self.processing_ns += time.perf_counter_ns() - started

    def info(self) -> dict[str, Any]:
        """Entry of an INFO response."""
        return {"name": self.name, "subject": self.subject, "queue_group": self.queue_group, "metadata": {}}

    def stats(self) -> dict[str, Any]:
        """Entry of a STATS response; times in nanoseconds."""
        return {
            "name": self.name,
            "subject": self.subject,
            "queue_group": self.queue_group,
            "num_requests": self.requests,
            "num_errors": self.errors,
            "last_error": self.last_error,
            "processing_time": self.processing_ns,
            "average_processing_time": self.processing_ns // max(self.requests, 1),
        }


class Endpoints:
    """The endpoints of one service: served through the bus, counted here, described on `$SRV.>`."""

    def __init__(self, bus: "Bus", *, name: str, identity: str, version: str, description: str) -> None:
        """:param identity: unique to this process; `name` may hold letters, digits, `-` and `_`"""
        self._bus = bus
        self._identity: dict[str, Any] = {"name": name, "id": identity, "version": version, "metadata": {}}
        self._description = description
        self._started = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._endpoints: list[Endpoint] = []

    async def serve(
        self,
        name: str,
        subject: str,
        handler: "Handler",
        *,
        queue_group: str = QUEUE_GROUP_OF_ONE,
        max_inflight: int = 256,
    ) -> "Subscription":
        """`bus.serve`, counted and described as endpoint `name`. Served again (a new leader), it keeps its
        counts."""
        from podyard.bus.services import Prompt  # who serves has imported the bus; who only describes need not

        endpoint = self._endpoint(name, subject, queue_group)
        counted = Prompt(_begun(endpoint, handler)) if isinstance(handler, Prompt) else _counted(endpoint, handler)
        return await self._bus.serve(subject, counted, queue_group=queue_group, max_inflight=max_inflight)

    def _endpoint(self, name: str, subject: str, queue_group: str) -> Endpoint:
        for endpoint in self._endpoints:
            if endpoint.name == name:
                return endpoint
        endpoint = Endpoint(name, subject, queue_group)
        self._endpoints.append(endpoint)
        return endpoint

    async def describe(self) -> None:
        """Answer discovery requests from now on."""
        name, identity = self._identity["name"], self._identity["id"]
        for verb in VERBS:
            for subject in (f"$SRV.{verb}", f"$SRV.{verb}.{name}", f"$SRV.{verb}.{name}.{identity}"):
                await self._bus.serve(subject, self._answerer(verb))

    def _answerer(self, verb: str) -> "Callable[[Request], Awaitable[bytes]]":
        async def answer(_request: "Request") -> bytes:
            return self.response(verb)

        return answer

    def response(self, verb: str) -> bytes:
        """The response to `PING`, `INFO` or `STATS`."""
        body: dict[str, Any] = {"type": f"io.nats.micro.v1.{verb.lower()}_response", **self._identity}
        if verb == "INFO":
            body |= {"description": self._description, "endpoints": [found.info() for found in self._endpoints]}
        elif verb == "STATS":
            body |= {"started": self._started, "endpoints": [found.stats() for found in self._endpoints]}
        return msgspec.json.encode(body)


def _counted(endpoint: Endpoint, handler: "Handler") -> "Handler":
    async def counted(request: "Request") -> bytes | None:
        endpoint.requests += 1
        with endpoint.handling():
            return await handler(request)

    return counted


def _begun(endpoint: Endpoint, handler: "Prompt") -> "Callable[[Request], bytes | Later]":
    """The same of a prompt handler; what it waits for counts as well."""

    def begin(request: "Request") -> "bytes | Later":
        endpoint.requests += 1
        with endpoint.handling():
            found = handler.begin(request)
        return found if isinstance(found, bytes) else lambda: _waited(endpoint, found)

    return begin


async def _waited(endpoint: Endpoint, later: "Later") -> bytes | None:
    with endpoint.handling():
        return await later()
