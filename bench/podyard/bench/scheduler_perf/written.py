"""What the benchmark has made so far: what admission asks for, names, and messages. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from podyard.bench.scheduler_perf import moulds
from podyard.bench.scheduler_perf.moulds import Admitter, Mould, Names, new_uid
from podyard.bus import Outgoing
from podyard.cli.errors import InputError
from podyard.objects import admission
from podyard.proto import subjects

Document: TypeAlias = dict[str, Any]


class Written:
    """Objects by kind, as they were created; and the pods that are there.

    :param now: seconds since 1970
    :param by_api: an api admits what is made: messages hold objects as a client sends them
    """

    def __init__(self, now: Callable[[], float], *, by_api: bool = False) -> None:
        self._by_api = by_api
        self._objects: dict[str, dict[tuple[str, str], Document]] = {}
        self.pods: dict[str, dict[str, Mapping[str, str]]] = {}
        """Labels of pods that were created and not deleted from here, by namespace and name."""
        self.namespaces: set[str] = set()
        self.names = Names()
        self.admitter = Admitter(self, now)
        self.created = 0

    # what admission asks

    def get(self, resource: str, namespace: str, name: str) -> Any | None:
        """The object, None if there is none or it is a pod."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: str) -> Iterable[Any]:
        """All objects of a resource but pods and nodes, which admission does not ask for."""
        return self._objects.get(resource, {}).values()

    # what is made

    def mould(self, document: Document, namespace: str = "") -> Mould:
        """A mould for objects like this, in a namespace if it is of a kind that has one.

        :raises InputError: nobody would take such an object
        """
        kind = admission.kind_of(document)
        if kind.resource == "secrets" and not self._by_api:
            raise InputError("Secret: the api seals them, and none runs", "run it with --services api")
        if kind.namespaced:
            if not namespace:
                raise InputError(f"{kind.kind}: the op names no namespace for it")
            document["metadata"]["namespace"] = namespace
        elif document["metadata"].get("namespace"):
            raise InputError(f"{kind.kind}: is in no namespace, but says one")
        if self._by_api:
            sent = moulds.as_sent(document)
            return self.admitter.mould(document)._replace(payload=sent)
        return self.admitter.mould(document)

    def name_for(self, metadata: Mapping[str, Any]) -> str:
        """The name that an object says, or one that nobody has.

        :raises InputError: it says none
        """
        name: str = metadata.get("name", "")
        begins: str = metadata.get("generateName", "")
        if not name and not begins:
            raise InputError("an object has neither a name nor a generateName")
        return name or self.names.after(begins)

    def cast(self, mould: Mould, name: str, index: int = 0, uid: str = "") -> Outgoing:
        """The message that creates an object, which counts as there from now on."""
        message = mould.cast(name, uid or new_uid(), index)
        key = (mould.namespace, name)
        if mould.resource == subjects.PODS:
            self.pods.setdefault(mould.namespace, {})[name] = mould.document["metadata"].get("labels") or {}
        elif mould.resource == "namespaces":
            self.namespaces.add(name)
            self._objects.setdefault("namespaces", {})[key] = mould.document
        elif mould.resource != "nodes":
            self._objects.setdefault(mould.resource, {})[key] = mould.document
        self.created += 1
        return message
