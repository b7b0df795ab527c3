"""A service for tests, run as a process: `python echo_service.py MODE` with PODYARD_* in the environment.

Modes: `serve` answers on `test.echo`; `fail` raises; `hang` does not end when cancelled; `block` stops the
event loop after a request; `leave` returns at once; `dump` has something to dump, and something that cannot
be dumped.
"""

import ctypes
import os
import sys
import time

import anyio
import msgspec

from podyard.runtime.process import run
from podyard.runtime.service import Service, ServiceDefinition
from podyard.runtime.settings import SettingsError, load_settings

MODE = sys.argv[1]
PR_GET_DUMPABLE = 3


class EchoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Its own section."""

    greeting: str = "hello"


async def main(service: Service[EchoSettings]) -> None:
    service.log.info("dumpable", answer=ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))

    async def echo(request):
        if MODE == "block":
            time.sleep(1.5)  # noqa: ASYNC251 - the test is about a blocked loop
        service.spans.emit("echo", trace=service.spans.new_trace(), start=time.time(), end=time.time())
        return f"{service.settings.greeting} {request.payload.decode()}".encode()

    async def broken():
        raise RuntimeError("broken on purpose")

    async def dump():
        service.log.info("what it holds")

    if MODE == "dump":
        service.dumps.add("broken", broken)
        service.dumps.add("echo", dump)
    service.health.set_ready("echo", False, "subscribing")
    await service.endpoints.serve("echo", "test.echo", echo)
    service.health.set_ready("echo", True)
    if MODE == "fail":
        raise RuntimeError("broken on purpose")
    if MODE == "leave":
        return
    try:
        await anyio.sleep_forever()
    finally:
        if MODE == "hang":
            with anyio.CancelScope(shield=True):
                await anyio.sleep(60)
        service.log.info("finished what was in hand")


SERVICE = ServiceDefinition(name="echo", settings_type=EchoSettings, main=main, description="answers what it is told")

if __name__ == "__main__":
    try:
        common, own = load_settings(EchoSettings, "echo", environment=os.environ)
    except SettingsError as error:
        sys.exit(str(error))
    sys.exit(run(SERVICE, common, own))
