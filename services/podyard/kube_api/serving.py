"""The application that is served over HTTPS: who asks, what for, and the answer or the refusal.

Whatever one request raises costs that request alone.
"""

import gzip
import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

import anyio
import anyio.to_thread
import msgspec
from anyio import lowlevel
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from podyard.kube_api import bodies
from podyard.kube_api.changing import Change, Changing, Deletion
from podyard.kube_api.core import access, deleting, discovery, errors, paths, scaling
from podyard.kube_api.core.access import Access, Identity, Wish
from podyard.kube_api.core.bindings import BINDING, BINDINGS
from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.media import Page
from podyard.kube_api.core.openapi import OpenApi
from podyard.kube_api.core.order import METRICS
from podyard.kube_api.core.paths import Asked
from podyard.kube_api.core.served import Served
from podyard.kube_api.instruments import Instruments
from podyard.kube_api.large import LargeWork
from podyard.kube_api.measuring import Measuring
from podyard.kube_api.reading import Reading, Stream
from podyard.kube_api.writing import Options, Outcome
from podyard.objects.documents import Document, mapping
from podyard.runtime import probes, web
from podyard.runtime.connections import Connection
from podyard.runtime.health import Health
from podyard.runtime.identities import Tokens

log: Final = logging.getLogger("podyard.kube_api")

JSON: Final = "application/json"
ZIPPED_FROM: Final = 128 * 1024
"""Bytes of an answer. Source: apiserver/pkg/endpoints/handlers/responsewriters/writers.go,
defaultGzipThresholdBytes."""
ZIP_LEVEL: Final = 1
MOST_PARAMETERS: Final = 256
SEND_S: Final = 30.0
"""How long a client may take to read what a watch sends before it is let go."""
PIECE_BYTES: Final = 256 * 1024
"""Of an answer that are sent at once."""
CHANGES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_HEADERS: Final = {"Cache-Control": "no-cache, private"}


Query = Mapping[str, list[str]]


class Api:
    """The application. Owned by the service's event loop."""

    def __init__(
        self,
        *,
        access: Access,
        tokens: Callable[[], Tokens],
        catalogue: Callable[[], tuple[Catalogue, OpenApi]],
        reading: Reading,
        changing: Changing,
        work: LargeWork,
        measuring: Measuring,
        instruments: Instruments,
        health: Health,
        version: Document,
        address: Callable[[], str],
        request_s: float,
    ) -> None:
        """
        :param tokens: that count now
        :param catalogue: what is served now
        :param work: done on what is large
        :param version: what `/version` answers
        :param address: `host:port` of this server
        :param request_s: that a request other than a watch may take
        """
        self._access = access
        self._tokens = tokens
        self._catalogue = catalogue
        self._reading = reading
        self._changing = changing
        self._work = work
        self._measuring = measuring
        self._instruments = instruments
        self._health = health
        self._version = version
        self._address = address
        self._request_s = request_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        started = anyio.current_time()
        verb = ""
        try:
            identity = self._let_in(request)
            asked = self._asked(request, identity)
            verb = asked.verb
            response = await self._answer(request, asked, identity)
        except ApiError as error:
            response = refused(error)
        except ClientDisconnect:  # before the end of his body: nobody waits for an answer
            return
        except Exception as error:  # whatever it is: the others are answered
            log.exception("a request could not be answered: %s %s", request.method, scope["path"])
            response = refused(
                ApiError(500, "InternalError", f"Internal error occurred: {type(error).__name__}; the log says more")
            )
        self._instruments.answered(verb, response.status_code, anyio.current_time() - started)
        await response(scope, receive, send)

    def _let_in(self, request: Request) -> Identity | None:
        """Who asks; None: for what everybody may have.

        :raises ApiError: 401, before anybody looks whether there is such a path
        """
        identity = self._who(request)
        if identity is None and not access.is_free(request.scope["path"]):
            raise access.unauthorized()
        return identity

    def _asked(self, request: Request, identity: Identity | None) -> Asked:
        """What is asked for, by somebody who may.

        :raises ApiError: he may not, or it leads nowhere
        """
        path: str = request.scope["path"]
        try:
            asked = paths.parse(request.method, path, _query(request.scope))
        except ApiError:
            if identity is not None and not access.is_free(path):
                self._access.check(identity, Wish(request.method.lower(), path=path))
            raise
        if identity is not None and not access.is_free(path):
            self._access.check(identity, _wish(asked, path))
        return asked

    async def _answer(self, request: Request, asked: Asked, identity: Identity | None) -> Response:
        query = _query(request.scope)
        accept = request.headers.get("accept", "")
        if asked.goal == "health":
            return self._of_health(asked, query)
        if asked.goal == "version":
            return _json(self._version)
        assert identity is not None, "only health and the version are for everybody"
        if asked.goal == "resource":
            return await self._of_resource(request, asked, query, identity)
        return await self._described(request, asked, query, accept)

    def _who(self, request: Request) -> Identity | None:
        found, _ = web.who(request, self._tokens())
        return None if found is None else Identity(found.user, found.groups)

    def _of_health(self, asked: Asked, query: Query) -> Response:
        checks = self._health.readiness() if asked.resource == "readyz" else self._health.life()
        if asked.name:
            answer = probes.of_one(checks, asked.name)
            if answer is None:
                raise errors.not_found("check", "", asked.name)
        else:
            answer = probes.of_all(asked.resource, checks, verbose="verbose" in query, exclude=query.get("exclude", []))
        return Response(answer.body, answer.status, {**_HEADERS, "Content-Type": answer.kind})

    async def _described(self, request: Request, asked: Asked, query: Query, accept: str) -> Response:
        """Discovery and OpenAPI."""
        catalogue, described = self._catalogue()
        if asked.goal == "openapi":
            page = await anyio.to_thread.run_sync(described.index, accept)
        elif asked.goal == "openapi-v2":
            page = await anyio.to_thread.run_sync(described.together, accept)
        elif asked.goal == "openapi-document":
            page = described.document(asked.group, asked.version, accept, query.get("hash", [""])[0])
        else:
            page = discovery.answer(asked, accept, catalogue, self._address())
        return await _page(request, page.unless(request.headers.get("if-none-match", "")))

    # ---- objects -------------------------------------------------------------------------------------------

    async def _of_resource(self, request: Request, asked: Asked, query: Query, identity: Identity) -> Response:
        served = self._served(asked)
        if asked.verb in CHANGES:
            with anyio.move_on_after(self._request_s) as limit:
                response = await self._change(request, asked, served, query, identity)
                return _warned(response, [access.NOT_ENFORCED]) if served.group == access.RBAC else response
            assert limit.cancelled_caught
            raise ApiError(504, "Timeout", f"the request took longer than {self._request_s:g} s", retry_after_s=1)
        shows_values = self._access.may_see_values(identity)
        accept = request.headers.get("accept", "")
        if served.group == METRICS:
            return await _page(request, self._measuring.page(served, asked, query, accept))
        if asked.verb == "watch":
            stream = await self._reading.watch(served, asked, query, accept, identity.user, shows_values=shows_values)
            return _Streaming(stream, request.state.connection)
        if asked.verb == "list":
            page = await self._reading.page(served, asked, query, accept, identity.user, shows_values=shows_values)
        elif asked.subresource == "scale":
            document = await self._reading.document(served, asked, identity.user, shows_values=shows_values)
            return _json(scaling.scale_of(document, served))
        else:
            page = await self._reading.get(served, asked, accept, identity.user, shows_values=shows_values)
        return await _page(request, page)

    def _served(self, asked: Asked) -> Served:
        """
        :raises ApiError: 404, 405, 501: there is no such resource, or it is not done with it
        """
        catalogue, _ = self._catalogue()
        served = catalogue.find(asked.group, asked.version, asked.resource)
        if served is None:
            raise paths.nowhere()
        verbs = served.verbs
        if asked.subresource:
            part = served.subresource(asked.subresource)
            if part is None and asked.subresource in served.unserved:
                raise ApiError(
                    501,
                    "NotImplemented",
                    f"{asked.resource}/{asked.subresource} is not served here: Podyard runs no containers to ask",
                )
            if part is None:
                raise paths.nowhere()
            verbs = part.verbs
        of_one = asked.verb in ("get", "update", "patch", "delete") or bool(asked.subresource)
        if asked.verb not in verbs or of_one is not bool(asked.name):
            raise paths.not_allowed()
        if served.namespaced and not asked.namespace and asked.verb not in ("list", "watch"):
            raise paths.nowhere()
        if asked.namespace and not served.namespaced:
            raise paths.nowhere()
        return served

    async def _change(
        self, request: Request, asked: Asked, served: Served, query: Query, identity: Identity
    ) -> Response:
        with self._work.holding() as more:
            change = await _read(request, asked, served, query, identity, more)
            return await self._changed(change, query, identity)

    async def _changed(self, change: Change, query: Query, identity: Identity) -> Response:
        asked, served = change.asked, change.served
        if served.resource == BINDINGS or asked.subresource == BINDING:
            return _json(await self._changing.bind(change), 201)
        if served.stored is None:
            return _json(self._asked_about(change, identity), 201)
        part = served.subresource(asked.subresource) if asked.subresource else None
        if part is not None and part.name == "eviction":
            return _json(await self._changing.evict(change), 201)
        if part is not None and part.name == "scale":
            return _json(await self._changing.scale(change, part))
        match asked.verb:
            case "create":
                return _written(await self._changing.create(change), 201)
            case "update":
                return _written(await self._changing.replace(change))
            case "patch":
                return _written(await self._changing.patch(change))
            case "delete":
                return _deleted(await self._changing.delete(change))
            case _:
                return _deleted(await self._delete_all(change, query))

    async def _delete_all(self, change: Change, query: Query) -> Deletion:
        """DELETE of a collection: what is answered once all of it is deleted."""
        items = self._reading.selected(change.served, change.asked, query)
        warnings: tuple[str, ...] = ()
        for item in items:
            try:
                warnings = (await self._changing.delete(change, item)).warnings
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
        told = deleting.succeeded({"group": change.served.group, "kind": change.served.resource})
        return Deletion(told, warnings=warnings)

    def _reviewed(self, document: Document) -> Document:
        """Whose token somebody has been shown. Source: registry/authentication/tokenreview/storage.go."""
        token = mapping(document, "spec").get("token")
        if not isinstance(token, str) or not token:
            raise errors.bad_request("token is required for TokenReview in authentication")
        found = self._tokens().identity(token)
        if found is None:
            return {"authenticated": False, "user": {}}
        return {"authenticated": True, "user": {"username": found.user, "groups": sorted(found.groups)}}

    def _asked_about(self, change: Change, identity: Identity) -> Document:
        """Who somebody is, and what he may: himself; whose token it is: whoever may write."""
        kind = change.served.kind
        document = bodies.document(change.body, change.media, kind)
        if kind == "SelfSubjectReview":
            about = {"username": identity.user, "groups": sorted(identity.groups)}
            return {**document, "kind": kind, "apiVersion": change.served.api_version, "status": {"userInfo": about}}
        if kind == "TokenReview":
            return {
                **document,
                "kind": kind,
                "apiVersion": change.served.api_version,
                "status": self._reviewed(document),
            }
        status = {"allowed": self._access.review(identity, document)}
        return {**document, "kind": kind, "apiVersion": change.served.api_version, "status": status}


def _query(scope: Scope) -> dict[str, list[str]]:
    """
    :raises ApiError: 400, too many parameters
    """
    try:
        return parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError as error:
        raise errors.bad_request(f"more than {MOST_PARAMETERS} query parameters") from error


async def _read(
    request: Request, asked: Asked, served: Served, query: Query, identity: Identity, more: Callable[[int], None]
) -> Change:
    one = {name: values[0] for name, values in query.items()}
    manager = one.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0] or "unknown"
    return Change(
        asked=asked,
        served=served,
        body=await bodies.read(request, more),
        media=bodies.media_type(request),
        query=one,
        options=Options(
            who=identity.user,
            dry_run=bodies.dry_run(query.get("dryRun", []), asked.verb),
            validation=bodies.validation(one, asked.verb),
        ),
        manager=manager[:128],
    )


def _wish(asked: Asked, path: str) -> Wish:
    if asked.goal != "resource":
        return Wish("get", path=path)
    return Wish(asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace, asked.name, path)


class _Pieces(Response):
    """A large answer: what a client has not read lies here once, and others have their turns."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body, left = self.body, len(self.body)
        for at in range(0, len(body), PIECE_BYTES):
            left -= PIECE_BYTES
            piece = bytes(body[at : at + PIECE_BYTES])
            await send({"type": "http.response.body", "body": piece, "more_body": left > 0})
            await lowlevel.checkpoint()


class _Streaming(Response):
    """A watch. A client that has gone, or does not read, is let go."""

    def __init__(self, stream: Stream, connection: Connection) -> None:
        super().__init__(headers={**_HEADERS, "Content-Type": stream.media_type})
        del self.headers["content-length"]
        self._chunks = stream.chunks
        self._connection = connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connection.allow(None)  # it ends by itself
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": self.raw_headers})
        # the head goes out at once: who watches waits for it
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async with anyio.create_task_group() as tasks:

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_gone)
            try:
                await self._tell(send)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._chunks.aclose()
                tasks.cancel_scope.cancel()

    async def _tell(self, send: Send) -> None:
        async for chunk in self._chunks:
            if not await self._sent(send, chunk):
                return
        self._connection.allow(SEND_S)
        await self._sent(send, b"", more=False)

    async def _sent(self, send: Send, chunk: bytes, *, more: bool = True) -> bool:
        """Whether there was room for it in time. Otherwise the connection is gone."""
        with anyio.move_on_after(SEND_S) as limit:
            await send({"type": "http.response.body", "body": chunk, "more_body": more})
        if limit.cancelled_caught:
            self._connection.let_go()
        return not limit.cancelled_caught


# ---- answers -----------------------------------------------------------------------------------------------


def refused(error: ApiError) -> Response:
    """The refusal as an answer."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
    return _json(error.status(), error.code, headers)


def _written(outcome: Outcome, status: int = 200) -> Response:
    return _warned(_json(outcome.document, status), outcome.warnings)


def _deleted(deletion: Deletion) -> Response:
    return _warned(_json(deletion.document, deletion.status), deletion.warnings)


def _warned(response: Response, warnings: Sequence[str]) -> Response:
    """With warnings that kubectl shows."""
    for warning in warnings:
        response.headers.append("Warning", f"299 - {msgspec.json.encode(warning).decode()}")
    return response


def _json(document: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(document) + b"\n"
    return Response(body, status, {**_HEADERS, "Content-Type": JSON, **(headers or {})})


async def _page(request: Request, page: Page) -> Response:
    headers = {**_HEADERS, "Content-Type": page.content_type, **page.headers}
    if page.etag:
        headers["Etag"] = page.etag
    body = page.body
    if len(body) >= ZIPPED_FROM and "gzip" in request.headers.get("accept-encoding", ""):
        body = await anyio.to_thread.run_sync(gzip.compress, body, ZIP_LEVEL)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return (_Pieces if len(body) > PIECE_BYTES else Response)(body, page.status, headers)
