"""What keeps a text from being a label's key or value: all that is wrong, one sentence each.

Source: apimachinery/pkg/api/validate/content/kube.go (IsLabelKey, IsLabelValue).
"""

from podyard.objects import names


def key_faults(text: str) -> list[str]:
    """What keeps `text` from being `[domain/]name`."""
    parts = text.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {names.QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    faults = [f"prefix part {fault}" for fault in _domain_faults(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif fault := _length_fault(name, names.LONGEST_LABEL):
        faults.append(f"name part {fault}")
    return faults if names.QUALIFIED.fullmatch(name) else [*faults, f"name part {names.QUALIFIED_RULE}"]


def _domain_faults(domain: str) -> list[str]:
    if not domain:
        return ["must be non-empty"]
    faults = [fault] if (fault := _length_fault(domain, names.LONGEST_SUBDOMAIN)) else []
    return faults if names.SUBDOMAIN.fullmatch(domain) else [*faults, names.SUBDOMAIN_RULE]


def value_faults(text: str) -> list[str]:
    """What keeps `text` from being the value of a label."""
    faults = [fault] if (fault := _length_fault(text, names.LONGEST_LABEL)) else []
    return faults if not text or names.QUALIFIED.fullmatch(text) else [*faults, names.VALUE_RULE]


def _length_fault(text: str, limit: int) -> str:
    return names.too_long(limit) if len(text.encode()) > limit else ""


def is_extended_resource(name: str) -> bool:
    """Whether `name` can be that of a resource that Kubernetes does not define. Source:
    v1helper.IsExtendedResourceName."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and not key_faults(f"requests.{name}")
