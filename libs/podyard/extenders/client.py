"""Calls to HTTP extenders. Whatever goes wrong is an answer with an `error`: the framework knows who may
fail.

Source: kube-scheduler v1.36.2, pkg/scheduler/extender.go (send, makeTransport).
"""

import ssl
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.configuration.wire import Extender as Configured
from podyard.configuration.wire import TlsConfig
from podyard.extenders import protocol
from podyard.extenders.protocol import AnswerError
from podyard.framework.extenders import (
    Answers,
    Calls,
    Extender,
    ExtenderAnswer,
    ExtenderCall,
    FilterAnswer,
    FilterCall,
    PreemptAnswer,
    PreemptCall,
    PrioritizeAnswer,
    PrioritizeCall,
)
from podyard.framework.status import told
from podyard.proto.message import PodRef

if TYPE_CHECKING:  # a tenth of a second of CPU, for those who have extenders
    import httpx

T = TypeVar("T")
OK: Final = 200
PLAIN: Final = ("", "identity")
"""Content encodings that are read: a packed answer may be a thousand times as large as what is sent."""


def described(configured: Sequence[Configured]) -> tuple[Extender, ...]:
    """What the cycle has to know of the extenders, in the same order."""
    return tuple(
        Extender(
            name=one.url_prefix,
            filters=bool(one.filter_verb),
            prioritizes=bool(one.prioritize_verb),
            preempts=bool(one.preempt_verb),
            weight=one.weight,
            ignorable=one.ignorable,
            node_cache_capable=one.node_cache_capable,
            managed_resources=frozenset(resource.name for resource in one.managed_resources),
        )
        for one in configured
    )


class ExtenderClients:
    """One HTTP client an extender; to be used within `clients_of`."""

    def __init__(self, configured: Mapping[str, tuple[Configured, "httpx.AsyncClient"]]) -> None:
        self._clients = configured

    async def ask(self, calls: Calls, nodes: NodeTable) -> Answers:
        """Make all calls at the same time; returns their answers in the same order.

        :param nodes: where nodes are found by name; must not change meanwhile
        """
        answers: dict[int, ExtenderAnswer] = {}

        async def make(at: int, call: ExtenderCall) -> None:
            answers[at] = await self._answer(call, nodes)

        async with anyio.create_task_group() as tasks:
            for at, call in enumerate(calls):
                tasks.start_soon(make, at, call)
        return tuple(answers[at] for at in range(len(calls)))

    async def bind(self, name: str, pod: PodRef, node: str) -> str:
        """Let the extender bind; returns what went wrong, "" if nothing."""
        configured, _ = self._clients[name]
        try:
            return await self._send(name, configured.bind_verb, protocol.bind_request(pod, node), protocol.bind_error)
        except Exception as fault:  # the boundary to extenders: whatever is wrong with an answer is the pod's error
            return self._in_words(name, fault)

    async def _answer(self, call: ExtenderCall, nodes: NodeTable) -> ExtenderAnswer:
        name = call.extender.name
        configured, _ = self._clients[name]
        match call:
            case FilterCall():
                return await self._or_error(
                    name,
                    configured.filter_verb,
                    lambda: protocol.filter_request(call, nodes),
                    lambda answer: protocol.filter_answer(call.extender, answer),
                    lambda error: FilterAnswer(error=error),
                )
            case PrioritizeCall():
                return await self._or_error(
                    name,
                    configured.prioritize_verb,
                    lambda: protocol.filter_request(call, nodes),
                    protocol.prioritize_answer,
                    lambda error: PrioritizeAnswer(error=error),
                )
            case PreemptCall():
                return await self._or_error(
                    name,
                    configured.preempt_verb,
                    lambda: protocol.preempt_request(call),
                    protocol.preempt_answer,
                    lambda error: PreemptAnswer(error=error),
                )

    async def _or_error(
        self,
        name: str,
        verb: str,
        request: Callable[[], dict[str, Any]],
        read: Callable[[Any], T],
        failed: Callable[[str], T],
    ) -> T:
        try:
            return await self._send(name, verb, request(), read)
        except Exception as fault:  # the boundary to extenders: no UTF-8, nested too deep, cut off, ...
            return failed(self._in_words(name, fault))

    async def _send(self, name: str, verb: str, body: dict[str, Any], read: Callable[[Any], T]) -> T:
        configured, client = self._clients[name]
        url = f"{configured.url_prefix.rstrip('/')}/{verb}"
        payload = msgspec.json.encode(body)
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        with anyio.fail_after(configured.http_timeout_s or None):
            async with client.stream("POST", url, content=payload, headers=headers) as response:
                if response.status_code != OK:
                    raise AnswerError(f"failed {verb} with extender at URL {url}, code {response.status_code}")
                answer = await bounded(response, protocol.largest_answer(len(payload)))
        return read(msgspec.json.decode(answer))

    def _in_words(self, name: str, fault: Exception) -> str:
        configured, _ = self._clients[name]
        if isinstance(fault, AnswerError):
            return str(fault)
        if isinstance(fault, TimeoutError):
            return f"extender at {name}: no answer within {configured.http_timeout_s:g} s (httpTimeout)"
        if isinstance(fault, RecursionError):
            return f"extender at {name}: the answer is nested too deep"
        return told(f"extender at {name}: {fault or type(fault).__name__}")


async def bounded(response: "httpx.Response", largest: int) -> bytes:
    """An answer's body, read no further than to the bound.

    :raises AnswerError: if it is longer, in bytes, or packed
    """
    encoding = response.headers.get("Content-Encoding", "").lower()
    if encoding not in PLAIN:
        raise AnswerError(f"the answer is packed ({encoding}), which was not asked for")
    found = bytearray()
    async for part in response.aiter_raw():
        found += part
        if len(found) > largest:
            raise AnswerError(f"the answer has more than {largest} bytes")
    return bytes(found)


NO_CLIENTS: Final = ExtenderClients({})
"""Where no extender is configured."""


@asynccontextmanager
async def clients_of(configured: Sequence[Configured]) -> AsyncGenerator[ExtenderClients]:
    """Clients that keep their connections open.

    :raises ssl.SSLError, OSError: if an extender's certificates cannot be read
    """
    async with AsyncExitStack() as stack:
        clients = {one.url_prefix: (one, await stack.enter_async_context(_client(one))) for one in configured}
        yield ExtenderClients(clients)


def _client(configured: Configured) -> "httpx.AsyncClient":
    import httpx

    verify: ssl.SSLContext | bool = _tls(configured.tls_config or TlsConfig()) if configured.enable_https else True
    # proxies of the environment are not for services of the cluster
    return httpx.AsyncClient(verify=verify, timeout=None, trust_env=False)


def _tls(tls: TlsConfig) -> ssl.SSLContext:
    """Without an authority of its own any certificate is taken, as the reference does."""
    context = ssl.create_default_context()
    if tls.insecure or not (tls.ca_file or tls.ca_data):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca_data:
        context.load_verify_locations(cadata=tls.ca_data.decode())
    else:
        context.load_verify_locations(cafile=tls.ca_file)
    if tls.cert_data:
        with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
            certificate.write(tls.cert_data)
            key.write(tls.key_data)
            certificate.flush()
            key.flush()
            context.load_cert_chain(certificate.name, key.name)
    elif tls.cert_file:
        context.load_cert_chain(tls.cert_file, tls.key_file or None)
    return context
