"""What can be set of the descheduler: section `descheduler` of the options file, `PODYARD_DESCHEDULER_*`."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from msgspec import Meta

from podyard.runtime.leases import LeaseSettings

OF_EVENTS: Final = ("gather_s", "pause_s")
OF_PROMETHEUS: Final = ("secrets_dir", "prometheus_ca_file", "prometheus_timeout_s")


class DeschedulerSettings(LeaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is evicted stands in the policy file; this is about when and how."""

    policy: str = ""
    """Path of the DeschedulerPolicy (descheduler/v1alpha2). Empty: nothing is ever evicted."""
    interval_s: Annotated[float, Meta(ge=0)] = 300.0
    """Seconds from the start of one cycle of all plugins to the start of the next; 0: one cycle only. Source:
    the flag --descheduling-interval, 5m in examples."""
    run_on: Literal["interval", "events", "both"] = "interval"
    """What starts cycles. `events`: what plugins have registered for, each time a cycle of the plugins that
    it concerns; all of them run once at the beginning. The reference knows intervals only."""
    gather_s: Annotated[float, Meta(ge=0)] = 5.0
    """Seconds from the first event to its cycle: what comes meanwhile belongs to it."""
    pause_s: Annotated[float, Meta(ge=0)] = 30.0
    """Seconds from the end of a cycle to the start of one that events start, at least: what was moved has to
    settle."""
    once: bool = False
    """End after one cycle, as with an interval of 0."""
    plan: Literal["report", "obey"] = "report"
    """Each pod that is to go is placed by its own scheduling profile first. `report`: where it would go, and
    why it should rather stay, is told. `obey`: a pod that would come back, go where it is no better off, or
    stay pending, stays; so do workloads whose moved pods came back. The reference knows no plan."""
    dry_run: bool = False
    """Judge and count as always, write nothing."""
    secrets_dir: str = ""
    """Folder of what policies refer to as secrets: `<namespace>/<name>/<key>`, the token of Prometheus as key
    `prometheusAuthToken`. Read again in each cycle."""
    prometheus_ca_file: str = ""
    """Whom to trust about Prometheus' certificate, PEM. Empty: the authorities of the system."""
    prometheus_timeout_s: Annotated[float, Meta(gt=0)] = 10.0
    """How long a query may take. Longer than any that is meant for dashboards."""
    listing_timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long a cycle waits for its listing before it is given up."""

    @property
    def only_one(self) -> bool:
        """Whether the service ends after one cycle."""
        return self.once or self.interval_s == 0

    def unused(self, *, asks_prometheus: bool) -> Iterator[tuple[str, str]]:
        """What is set without effect, and why.

        :param asks_prometheus: whether the policy takes usage from there
        """
        if self.run_on == "interval":
            yield from self._changed(OF_EVENTS, "no events start cycles: descheduler.run_on is interval")
        if not asks_prometheus:
            yield from self._changed(OF_PROMETHEUS, "no metricsProviders of the policy has the source Prometheus")

    def _changed(self, names: tuple[str, ...], reason: str) -> Iterator[tuple[str, str]]:
        default = DeschedulerSettings()
        for name in names:
            if getattr(self, name) != getattr(default, name):
                yield f"descheduler.{name}", reason
