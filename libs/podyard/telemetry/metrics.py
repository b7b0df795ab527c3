"""Metrics every process has: CPU, memory, open files, garbage collections, and which build it is."""

import platform

import prometheus_client
from prometheus_client import gc_collector, process_collector


def new_registry(*, service: str, instance: str, version: str) -> prometheus_client.CollectorRegistry:
    """A registry of this process's own with `process_*`, `python_gc_*` and `podyard_info`."""
    registry = prometheus_client.CollectorRegistry(auto_describe=True)
    process_collector.ProcessCollector(registry=registry)
    gc_collector.GCCollector(registry=registry)
    about = prometheus_client.Info("podyard", "Which service this is", registry=registry)
    about.info({"service": service, "instance": instance, "version": version, "python": platform.python_version()})
    return registry
