"""What keeps a text from being a label's key or value: all that is wrong, one sentence each.

Source: apimachinery/pkg/api/validate/content/kube.go (IsLabelKey, IsLabelValue).
"""

import re
from typing import Final

from podyard.objects.names import LONGEST_LABEL, LONGEST_SUBDOMAIN, subdomain_fault

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DOMAIN_RULE: Final = subdomain_fault("_")


def key_faults(text: str) -> list[str]:
    """What keeps `text` from being `[domain/]name`."""
    parts = text.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    faults = [f"prefix part {fault}" for fault in _domain_faults(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif fault := _length_fault(name, LONGEST_LABEL):
        faults.append(f"name part {fault}")
    return faults if _NAME.fullmatch(name) else [*faults, f"name part {_NAME_RULE}"]


def _domain_faults(domain: str) -> list[str]:
    if not domain:
        return ["must be non-empty"]
    faults = [fault] if (fault := _length_fault(domain, LONGEST_SUBDOMAIN)) else []
    return faults if _DOMAIN.fullmatch(domain) else [*faults, _DOMAIN_RULE]


def value_faults(text: str) -> list[str]:
    """What keeps `text` from being the value of a label."""
    faults = [fault] if (fault := _length_fault(text, LONGEST_LABEL)) else []
    return faults if not text or _NAME.fullmatch(text) else [*faults, _VALUE_RULE]


def _length_fault(text: str, limit: int) -> str:
    return f"must be no more than {limit} bytes" if len(text.encode()) > limit else ""


def is_extended_resource(name: str) -> bool:
    """Whether `name` can be that of a resource that Kubernetes does not define. Source: v1helper.IsExtendedResourceName."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and not key_faults(f"requests.{name}")
