"""What can be set of the descheduler: section `descheduler` of the options file, `PODYARD_DESCHEDULER_*`."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class DeschedulerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
