"""A binder in a thread of its own: it can be paused or killed while others go on, as a process can."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

from podyard.binder import service as binder_service
from podyard.binder.settings import BinderSettings
from podyard.bus import BusSettings, connect
from podyard.runtime.service import Service
from podyard.shell import leading
from tests.contract.binder.conftest import DRAIN_S
from tests.contract.binder.stage import FaultyBus
from tests.support.services import make_service

START_WITHIN_S = 10.0


class Elsewhere:
    """Runs one binder service until killed. What its loop has in hand when it is killed never goes on."""

    def __init__(self, url: str, instance: str, **settings: Any) -> None:
        self.instance = instance
        self.faulty: FaultyBus | None = None
        self._service: Service[BinderSettings] | None = None
        self._url = url
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=instance, daemon=True)
        self._connected = threading.Event()
        self._goes_on = threading.Event()

    def start(self) -> "Elsewhere":
        self._thread.start()
        assert self._connected.wait(START_WITHIN_S), f"{self.instance} does not get a connection"
        return self

    def pause(self) -> None:
        """SIGSTOP."""
        self._loop.call_soon_threadsafe(self._goes_on.wait)

    def resume(self) -> None:
        """SIGCONT."""
        self._goes_on.set()

    def kill(self) -> None:
        """SIGKILL: it neither finishes nor lets go of anything."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_WITHIN_S)
        assert not self._thread.is_alive()

    @property
    def leads(self) -> bool:
        """Whether it believes so."""
        assert self._service is not None
        return self._service.metrics.get_sample_value("podyard_binder_leading") == 1

    @property
    def stands_by(self) -> bool:
        """Whether it says so on /readyz, as somebody who is ready."""
        assert self._service is not None
        return self._service.health.checks[leading.CHECK][:2] == (True, leading.STANDS_BY)

    def end(self) -> None:
        """Tidy up after the test: whatever it was, it ends in order."""
        self.resume()
        if self._thread.is_alive():
            self.kill()
        tidying = threading.Thread(target=self._tidy_up)
        tidying.start()
        tidying.join(START_WITHIN_S)

    def cut(self) -> None:
        """Nothing that it stores arrives from now on, its lease included; it still hears all."""
        assert self.faulty is not None
        self.faulty.cut = True

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._main = self._loop.create_task(self._serve())
        self._loop.run_forever()

    def _tidy_up(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._main.cancel()
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)
        self._loop.close()

    async def _serve(self) -> None:
        async with connect(BusSettings(servers=(self._url,), name=self.instance, drain_timeout_s=DRAIN_S)) as bus:
            self.faulty = FaultyBus(bus)
            self._service = make_service(
                binder_service.SERVICE, self.faulty, BinderSettings(**self._settings), instance=self.instance
            )
            self._connected.set()
            await binder_service.main(self._service)
