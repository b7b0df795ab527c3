"""The binder: a term of the real core, with a shell that lives in virtual time."""

from typing import Any

from podyard.binder.core import effects as binding
from podyard.binder.core.binder import Phase
from podyard.bus.delivery import Delivery
from podyard.proto.binder_api import BindRequest
from tests.unit.binder.stage import Term
from tests.unit.queue.small_world.log import Reader, follows_all
from tests.unit.queue.small_world.surroundings import Respond, Surroundings, profile_of


class BinderPart(Term):
    """One binder's term."""

    def __init__(self, world: Any, name: str, epoch: int) -> None:
        super().__init__(world, name, profile_of("binder"))
        self.world: Surroundings = world
        self._respond: dict[int, Respond] = {}
        self._ticks: set[float] = set()
        self.reader = Reader(world.log, world.lag(), follows_all, self._deliver, self._advance)
        self.reader.skip_to_end()
        self.elect(epoch)

    @property
    def leads(self) -> bool:
        return self.core.phase is not Phase.DEPOSED

    def list_all(self) -> None:
        self.reader.skip_to_end()
        super().list_all()

    def step(self, message: binding.Message) -> None:
        super().step(message)
        wake_at = self.core.wake_at
        if wake_at is not None and wake_at not in self._ticks:
            self._ticks.add(wake_at)
            self.world.clock.after(max(0.0, wake_at - self.world.now), lambda: self._tick(wake_at))

    def _tick(self, due: float) -> None:
        self._ticks.discard(due)
        if self.leads:
            self.step(binding.Tick())

    def _deliver(self, delivery: Delivery) -> None:
        changes = self.view.apply(delivery)
        if changes and self.leads:
            self.step(binding.Changed(changes))
        assert not self.view.take_effects()

    def _advance(self, position: int) -> None:
        self.view.advance(position)

    def serve(self, request: BindRequest, respond: Respond) -> None:
        """A request arrives; a term that ended says nothing."""
        if not self.leads:
            return
        ticket = next(self._tickets)
        self._respond[ticket] = respond
        self.step(binding.Requested(ticket, request))

    def carry_out(self, effect: binding.Effect) -> binding.Message | None:
        if isinstance(effect, binding.Reply):
            self._respond.pop(effect.ticket)(effect.reply)
            return None
        return super().carry_out(effect)
