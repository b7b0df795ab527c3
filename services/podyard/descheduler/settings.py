"""What can be set of the descheduler: section `descheduler` of the options file, `PODYARD_DESCHEDULER_*`."""

from typing import Annotated

import msgspec
from msgspec import Meta


class DeschedulerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is evicted stands in the policy file; this is about when and how."""

    policy: str = ""
    """Path of the DeschedulerPolicy (descheduler/v1alpha2). Empty: nothing is ever evicted."""
    interval_s: Annotated[float, Meta(gt=0)] = 300.0
    """Seconds from the start of one cycle to the start of the next. Source: the flag --descheduling-interval,
    5m in examples."""
    once: bool = False
    """End after one cycle."""
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
