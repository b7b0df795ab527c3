"""Queries of Prometheus, over HTTP. Whatever goes wrong is an answer: the plugin that asked does nothing in
this cycle, and says why.

Sources: descheduler v0.36.0, pkg/framework/plugins/nodeutilization/usageclients.go
(NodeUsageFromPrometheusMetrics) and pkg/descheduler/prom_client_controller.go; Prometheus v3.0.0,
docs/querying/api.md.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

import anyio
import anyio.to_thread
import httpx
import msgspec

from podyard.descheduler.core.measured import QueryFailed, QueryResult, Sample
from podyard.descheduler.core.policy import Prometheus as Provider
from podyard.descheduler.settings import DeschedulerSettings
from podyard.extenders.client import bounded
from podyard.extenders.protocol import AnswerError
from podyard.framework.status import described

TOKEN_KEY: Final = "prometheusAuthToken"
"""In the secret that a policy refers to."""
LARGEST_ANSWER: Final = 16 * 1024 * 1024
"""Bytes: 50,000 nodes with labels of 300 bytes."""
OLDEST_S: Final = 300.0
"""How far the time of a sample may be from that of the question: how long Prometheus looks back."""

OK: Final = 200
_VECTOR: Final = "vector"
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+|Inf)|NaN")


class _Element(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    status: Literal["success", "error"]
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


class _Unusable(Exception):
    """An answer that says nothing of nodes."""


class Prometheus:
    """Asks one server. The token is read for every cycle, so that it may be renewed."""

    def __init__(self, provider: Provider, settings: DeschedulerSettings) -> None:
        self._provider = provider
        self._settings = settings

    async def ask(self, queries: Iterable[str], now: float) -> dict[str, QueryResult]:
        """One after the other, each within `prometheus_timeout_s`.

        :param now: seconds since 1970, UTC: the time that the queries are about
        """
        try:
            headers, tls = await anyio.to_thread.run_sync(self._credentials)
        except (OSError, UnicodeDecodeError, _Unusable) as error:
            return dict.fromkeys(queries, QueryFailed(str(error)))
        # proxies of the environment are not for services of the cluster
        async with httpx.AsyncClient(verify=tls, headers=headers, timeout=None, trust_env=False) as client:
            return {query: await self._result(client, query, now) for query in queries}

    async def _result(self, client: httpx.AsyncClient, query: str, now: float) -> QueryResult:
        limit = self._settings.prometheus_timeout_s
        try:
            with anyio.fail_after(limit):
                return _samples(await self._text(client, query, now), now)
        except TimeoutError:
            return QueryFailed(f"no answer within {limit:g} s")
        except (_Unusable, AnswerError) as error:
            return QueryFailed(str(error))
        except Exception as fault:  # the boundary to Prometheus: no connection, no JSON, nested too deep, ...
            return QueryFailed(described(fault))

    async def _text(self, client: httpx.AsyncClient, query: str, now: float) -> bytes:
        url = f"{self._provider.url.rstrip('/')}/api/v1/query"
        form = {"query": query, "time": f"{now:.3f}"}
        async with client.stream("POST", url, data=form, headers={"Accept-Encoding": "identity"}) as response:
            text = await bounded(response, LARGEST_ANSWER)
            if response.status_code != OK:
                raise _Unusable(f"code {response.status_code} from {url}{_why(text)}")
            return text

    def _credentials(self) -> tuple[dict[str, str], ssl.SSLContext]:
        tls = ssl.create_default_context(cafile=self._settings.prometheus_ca_file or None)
        token = self._provider.auth_token
        if token is None or token.secret_reference is None:
            return {}, tls
        secret = token.secret_reference
        path = Path(self._settings.secrets_dir) / secret.namespace / secret.name / TOKEN_KEY
        found = path.read_text(encoding="ascii").strip()
        if not found or not found.isprintable():
            raise _Unusable(f"prometheus authentication token secret missing {TOKEN_KEY!r} data or empty: {path}")
        return {"Authorization": f"Bearer {found}"}, tls


def _why(text: bytes) -> str:
    """What an answer that is an error says of it."""
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f": {answer.error_type}: {answer.error}"


def _samples(text: bytes, now: float) -> tuple[Sample, ...]:
    """
    :raises _Unusable: if the answer is no vector of this time
    :raises msgspec.MsgspecError: if it is none of Prometheus
    """
    answer = msgspec.json.decode(text, type=_Answer)
    if answer.status != "success" or answer.data is None:
        raise _Unusable(f"{answer.error_type or 'error'}: {answer.error}")
    if answer.data.result_type != _VECTOR:
        got = answer.data.result_type
        raise _Unusable(f'expected query results to be of type "{_VECTOR}", got "{got}" instead')
    return tuple(_sample(one, now) for one in msgspec.json.decode(answer.data.result, type=tuple[_Element, ...]))


def _sample(one: _Element, now: float) -> Sample:
    moment, value = one.value
    labels: Mapping[str, str] = one.metric
    if abs(moment - now) > OLDEST_S:
        raise _Unusable(f"the sample of {dict(labels)} is {now - moment:.0f} s old")
    if _NUMBER.fullmatch(value) is None:
        raise _Unusable(f"the sample of {dict(labels)} is no number: {value!r}")
    return Sample(labels, float(value))
