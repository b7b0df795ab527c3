"""KubeSchedulerConfiguration v1, read as kube-scheduler v1.36.2 reads it: decoded, defaulted, validated,
built, written back.

Nothing here schedules, and nothing here reads a file by itself other than the certificates that a
configuration names: callers bring the text. What is wrong is told at once and in full (`errors`).
"""

from podyard.configuration.checking import faults
from podyard.configuration.errors import (
    BuildError,
    ConfigurationError,
    DecodeError,
    Fault,
    FieldError,
    InvalidConfiguration,
)
from podyard.configuration.model import Configuration, default, load
from podyard.configuration.wire import Extender

__all__ = [
    "BuildError",
    "Configuration",
    "ConfigurationError",
    "DecodeError",
    "Extender",
    "Fault",
    "FieldError",
    "InvalidConfiguration",
    "default",
    "faults",
    "load",
]
