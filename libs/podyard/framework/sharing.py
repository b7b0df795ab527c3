"""Which pods share results: those of equal signature.

Most plugins read of a pod only what its template says. Pods made from one template are told by the bytes of
that, so that those plugins sign one of them (measured: 1 µs instead of 20).
"""

from collections.abc import Hashable, Iterable
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from podyard.framework import optional_hooks
from podyard.framework.interfaces import Signed
from podyard.framework.pod_info import PodFacts, PodInfo
from podyard.framework.status import PluginError
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.proto.placement import Usage

TEMPLATES_BYTES: Final = 16 * 1024 * 1024
"""What templates whose signatures are known may take, and as much again their signatures; a usual template
takes 1.2 KB."""

USAGE_BYTES: Final = 700
"""What is known of a template besides its bytes: its number, and what a pod of it takes."""

HELD: Final = 8
"""How much larger a decoded pod with all that plugins make of it is than its bytes."""

_ENCODER: Final = msgspec.msgpack.Encoder()


class _Template(NamedTuple):
    number: int
    """Of what the plugins say of it that read the template alone."""
    usage: Usage
    """What each of its pods takes."""
    signature: tuple[Hashable, ...]
    """Of each of its pods; empty: some plugin reads more of them."""


class Signatures:
    """Signs pods for all plugins whose results are shared."""

    def __init__(self, plugins: Iterable[object]) -> None:
        """
        :param plugins: all that take part in PreFilter, Filter, PreScore and Score, each once
        """
        listed: list[Any] = list(plugins)
        self.complete = all(isinstance(plugin, Signed) for plugin in listed)
        """Every plugin says what it reads; else pods share nothing."""
        self._by_template = [plugin for plugin in listed if optional_hooks.reads_template(plugin)]
        self._by_pod = [plugin for plugin in listed if plugin not in self._by_template]
        self._few = all(optional_hooks.signs_few_templates(plugin) for plugin in self._by_pod)
        """Whether those can be told by a template that sign none of its pods."""
        self._templates = Kept[bytes, _Template](TEMPLATES_BYTES)
        self._numbers = Kept[Hashable, int](TEMPLATES_BYTES)
        """By signature. One that is forgotten gets another number: its pods share nothing with those
        before."""
        self._next = count()

    def of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that every plugin takes to be alike.

        :raises PluginError: if a plugin cannot sign the pod
        """
        joined = pod.pod
        template = _ENCODER.encode(
            (pod.namespace, pod.labels, joined.metadata.owner_references, joined.spec, joined.status)
        )
        known = self._templates.get(template)
        if known is None:
            return self._first_of(template, pod)
        self._templates.use(template)
        if isinstance(pod, PodFacts):
            pod.share_usage(known.usage)
        return known.signature or self._signed([known.number], self._by_pod, pod)

    def _first_of(self, template: bytes, pod: PodInfo) -> tuple[Hashable, ...]:
        number = self._number(pod)
        signature = self._signed([number], self._by_pod, pod)
        shared = self._few and signature.count(None) == len(self._by_pod)
        known = _Template(number, pod.usage, signature if shared else ())
        self._templates.keep(template, known, len(template) + USAGE_BYTES)
        return signature

    def _signed(self, found: list[Hashable], plugins: Iterable[Any], pod: PodInfo) -> tuple[Hashable, ...]:
        """`found` and what these plugins sign with.

        :raises PluginError: if one raises, or answers what has no hash
        """
        name = ""
        try:
            for plugin in plugins:
                name = plugin.name
                signature = plugin.signature(pod)
                hash(signature)
                found.append(signature)
        except Exception as fault:  # the boundary to plugins
            raise PluginError.wrapping(name, "signature", fault) from fault
        return tuple(found)

    def size(self, pod: PodInfo) -> int:
        """Bytes of what plugins may keep of a pod: its spec and labels, and what they make of them."""
        joined = pod.pod
        return HELD * len(_ENCODER.encode((pod.labels, joined.metadata.owner_references, joined.spec)))

    def _number(self, pod: PodInfo) -> int:
        signature = self._signed([], self._by_template, pod)
        number = self._numbers.get(signature)
        if number is None:
            number = next(self._next)
            self._numbers.keep(signature, number, bytes_of(signature))
        else:
            self._numbers.use(signature)
        return number
