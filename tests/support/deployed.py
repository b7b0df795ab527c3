"""Which services compose files and manifests for Kubernetes run."""

from typing import Final

from podyard.cli import services

KUBE_API: Final = "kube_api"
"""Served by `podyard up` alone, which makes its certificate and its token (docs/kubectl.md)."""
DEPLOYED: Final = tuple(name for name in services.NAMES if name != KUBE_API)
