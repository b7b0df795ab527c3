"""Real scheduler cores before a real binder core: the claims that decisions make, and what they are worth,
are theirs."""

import random
from typing import Any

from podyard.binder.core import effects
from podyard.bus import Delivery
from podyard.cluster.view import ClusterView
from podyard.framework.profile import Profile
from podyard.plugins.defaults import default_profile
from podyard.proto.binder_api import BindReply, BindRequest
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.scheduler.core.effects import Bind
from podyard.scheduler.core.messages import BindAnswered, Changed, Listed, Popped, SessionStarted, Work
from podyard.scheduler.core.scheduler import Scheduler
from tests.support.objects import HOSTNAME, ZONE
from tests.unit.binder.stage import FOLLOWED, Stage, Term

PROFILE = default_profile()


class Puller:
    """One scheduler: its view follows the stream as far as it is told to."""

    def __init__(self, stage: Stage, name: str, profile: Profile = PROFILE) -> None:
        self.stage = stage
        self.name = name
        self.view = ClusterView()
        self.session = f"{name}-1"
        self.core = Scheduler({profile.name: profile}, self.view, self.session)
        self.position = 0
        self.outbox: list[BindRequest] = []
        self.sent: dict[int, BindRequest] = {}
        """By ticket."""
        self._attempts = 0
        self._sessions = 1
        self.list_all()

    def tell(self, message: Any) -> None:
        for effect in self.core.step(message, self.stage.now):
            if isinstance(effect, Bind):
                self.outbox.append(effect.request)

    def list_all(self) -> None:
        self.view.begin_listing()
        for delivery in self.stage.stream.listed():
            if not delivery.subject.startswith("cluster.podstatus."):
                self.view.apply(delivery)
        changes = self.view.end_listing(self.stage.stream.last)
        self.position = self.stage.stream.last
        if changes:
            self.tell(Changed(changes))
        self.tell(Listed())

    def follow(self, until: int | None = None) -> None:
        """Read the stream, to its end or so far."""
        end = self.stage.stream.last if until is None else until
        while self.position < end:
            delivery = next(self.stage.stream.after(self.position), None)
            if delivery is None or delivery.sequence > end:
                self.position = end
            else:
                self.position = delivery.sequence
                self._take(delivery)
            self.view.advance(self.position)
            if self.view.take_effects():
                self.list_all()

    def _take(self, delivery: Delivery) -> None:
        if delivery.subject.startswith(FOLLOWED) and not delivery.subject.startswith("cluster.podstatus."):
            changes = self.view.apply(delivery)
            if changes:
                self.tell(Changed(changes))

    def decide(self, *names: str) -> None:
        """Pop these pods, as far as the view knows them, and decide."""
        popped: list[PoppedPod] = []
        for name in names:
            pod = self.view.pods.get(("default", name))
            if pod is not None and pod.bound is None:
                self._attempts += 1
                attempt = f"{self.session}/{self._attempts}"
                popped.append(PoppedPod(namespace="default", name=name, uid=pod.uid, attempt=attempt))
        self.tell(Popped(PopReply(epoch=1, position=self.view.position, pods=tuple(popped))))
        self.tell(Work(256))

    def send(self, binder: Term, at: int = 0, *, keep: bool = False) -> int:
        """Send a request that waits to be sent; with `keep` it will be sent again.

        :return: its ticket
        """
        request = self.outbox[at] if keep else self.outbox.pop(at)
        ticket = next(binder._tickets)
        self.sent[ticket] = request
        binder.step(effects.Requested(ticket, request))
        return ticket

    def take_answers(self, binder: Term) -> None:
        for ticket in [ticket for ticket in self.sent if ticket in binder.replies]:
            reply: BindReply = binder.replies[ticket]
            request = self.sent.pop(ticket)
            if reply.refused:
                self.outbox.append(request)
            else:
                self.tell(BindAnswered(request, reply))
                self.tell(Work(256))

    def begin_anew(self) -> None:
        """The queue wants nothing of the session any more."""
        self._sessions += 1
        self.session = f"{self.name}-{self._sessions}"
        self.tell(SessionStarted(self.session))


class Lagging(Stage):
    """Nobody reads the stream before being told to."""

    def pump(self) -> None:
        pass

    def zoned_node(self, name: str, zone: str, **more: Any) -> None:
        self.node(name, labels={ZONE: zone}, **more)

    def labelled_pod(self, name: str, app: str, **more: Any) -> None:
        self.pod(name, "500m", labels={"app": app}, **more)


def near(app: str, key: str = ZONE) -> dict[str, Any]:
    """Required affinity to pods of `app`."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def apart(app: str, key: str = HOSTNAME) -> dict[str, Any]:
    """Required anti-affinity to pods of `app`."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(app: str) -> dict[str, Any]:
    """At most one more in a zone than in another."""
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]}


def any_spec(chance: random.Random, app: str) -> dict[str, Any]:
    """What a pod asks for, drawn."""
    other = chance.choice("abc")
    return chance.choice([dict, lambda: near(other), lambda: apart(app), lambda: apart(other), lambda: spread(app)])()
