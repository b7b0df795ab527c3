"""Requests to Jaeger's query API. Blocking, with a time limit: a command asks, waits and ends."""

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from podyard.cli.errors import CliError, InputError
from podyard.cli.jaeger.model import Answer, Trace
from podyard.runtime import clock

URL_VARIABLE: Final = "PODYARD_JAEGER_URL"
LINK_VARIABLE: Final = "PODYARD_JAEGER_LINK_URL"
DEFAULT_URL: Final = "http://127.0.0.1:16686"
ANSWER_S: Final = 10.0
"""Seconds for one answer: Jaeger's memory answers in milliseconds, a large store in a few seconds."""

LOOKBACK_S: Final = 7 * 24 * 3600
"""How far back a search looks: as long as the decisions themselves are kept (streams.DECISIONS)."""

AHEAD_S: Final = 60
"""A search ends so far in the future: clocks differ."""


class Jaeger:
    """One Jaeger."""

    def __init__(self, url: str = "", link_url: str = "") -> None:
        """
        :param url: where its query API is; empty: `$PODYARD_JAEGER_URL`, else this machine's
        :param link_url: where a person's browser finds its pages; empty: `$PODYARD_JAEGER_LINK_URL`, else
            `url`
        :raises InputError: if the address is none
        """
        self.url = (url or os.environ.get(URL_VARIABLE, "") or DEFAULT_URL).rstrip("/")
        self._link_url = (link_url or os.environ.get(LINK_VARIABLE, "") or self.url).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise InputError(
                f"{URL_VARIABLE}={self.url}: not a web address", f"for example {URL_VARIABLE}={DEFAULT_URL}"
            )

    def link(self, trace_id: str) -> str:
        """The page of a trace."""
        return f"{self._link_url}/trace/{trace_id}"

    def services(self) -> list[str]:
        """Services that have sent spans.

        :raises CliError: if Jaeger does not answer
        """
        return sorted(self._get("/api/services", {}, dict[str, Any]).get("data") or [])

    def search(
        self, service: str, operation: str = "", tags: Mapping[str, str] | None = None, limit: int = 20
    ) -> list[Trace]:
        """Whole traces of which one span is of `service`, is called `operation` and has all `tags`; the
        newest, by start.

        :param tags: attributes of the span; booleans as `true` and `false`
        :raises CliError: if Jaeger does not answer
        """
        now_us = int(clock.now() * 1e6)
        query = {
            "service": service,
            "operation": operation,
            "tags": json.dumps(dict(tags or {})),
            "limit": str(limit),
            "start": str(now_us - LOOKBACK_S * 1_000_000),
            "end": str(now_us + AHEAD_S * 1_000_000),
        }
        return self._get("/api/traces", {key: value for key, value in query.items() if value}, Answer).traces()

    def trace(self, trace_id: str) -> Trace | None:
        """One trace; `None` if Jaeger has none of that id.

        :raises CliError: if Jaeger does not answer
        """
        try:
            found = self._get(f"/api/traces/{trace_id}", {}, Answer).traces()
        except _NotThereError:
            return None
        return found[0] if found else None

    def _get(self, path: str, query: Mapping[str, str], wanted: type[Any]) -> Any:
        address = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            with urllib.request.urlopen(address, timeout=ANSWER_S) as answer:
                return msgspec.json.decode(answer.read(), type=wanted)
        except urllib.error.HTTPError as error:
            if error.code == 404 and path.startswith("/api/traces/"):
                raise _NotThereError(path) from error
            raise CliError(
                f"{address}: HTTP {error.code}: {error.read(500).decode(errors='replace').strip()}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise CliError(f"no Jaeger answers at {self.url}: {reason}", _ADVICE) from error
        except msgspec.MsgspecError as error:
            raise CliError(f"{address}: not an answer of Jaeger's query API: {error}", _ADVICE) from error


_ADVICE: Final = (
    f"say where its query API is with {URL_VARIABLE}, and start the services with OTEL_EXPORTER_OTLP_ENDPOINT"
)


class _NotThereError(CliError):
    """Jaeger answers, but has no such trace."""
