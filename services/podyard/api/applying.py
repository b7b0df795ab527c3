"""`apply`: create or replace up to 256 objects, all checked before any is written."""

import logging
import uuid
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from podyard.api import definitions, read_back, results
from podyard.api.lookup import RequestLookup
from podyard.api.templates import PodTemplates
from podyard.api.vault import Vault
from podyard.bus.connection import Bus
from podyard.cluster import classify, finalizing, intents
from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import ClusterError, ObjectExists, ObjectMissing
from podyard.cluster.intents import Author, Document, Intent, Keep, Put, Remove, Step, Stored, Written
from podyard.cluster.keys import ObjectKey
from podyard.objects import acting, admission, decoding, secrets
from podyard.objects.documents import mapping
from podyard.objects.errors import ObjectError
from podyard.objects.extensions import DEFINITIONS
from podyard.objects.kinds import Kind
from podyard.proto import actions, subjects
from podyard.proto.actions import ActionName, ActionType
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ApplyRequest, ObjectResult
from podyard.shell import writes
from podyard.shell.charging import Charging

log: Final = logging.getLogger("podyard.api")


SHOWN_BYTES: Final = 2 * results.REPLY_BYTES
"""Of the objects that one dry run shows."""
_NO_DRY_RUN: Final = "nothing was done: objects are shown as they would be stored (`admitted`) by a dry run alone"
_TOO_MANY: Final = "the answer would be too long: ask for fewer objects at once"
_EACH_EXPECTED: Final = "nothing was done: `expected` names a version for each object, or for none"
LAST_FINALIZER: Final = "it was being deleted, and nothing keeps it any more"
_BESIDE: Final = "nothing was written: another object of the request may not be written here"


def new_uid() -> str:
    """A uid that was never used before."""
    return str(uuid.uuid4())


class Admitter:
    """Admission with its sources of names and uids, which a test may choose."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        random: Random,
        new_uid: Callable[[], str] = new_uid,
        vault: Vault | None = None,
    ) -> None:
        """
        :param clock: seconds since 1970, UTC
        :param random: chooses the end of generated names
        :param vault: seals Secrets; None: they are refused
        """
        self.vault = vault or Vault()
        self._clock = clock
        self._random = random
        self.new_uid = new_uid

    def admit(
        self,
        document: Document,
        lookup: RequestLookup,
        old: Document | None,
        validation: admission.Validation = "ignore",
        warnings: list[str] | None = None,
        manner: admission.Manner = "apply",
        schema: Document | None = None,
    ) -> Document:
        """
        :param warnings: what the sender should know is put there
        :param manner: how the document takes the place of `old`
        :param schema: of a custom kind
        :raises AdmissionError: with everything that is wrong with it
        :raises UnknownKindError: if it is of no kind
        """
        return admission.admit(
            document,
            lookup,
            old=old,
            now=self._clock(),
            new_uid=self.new_uid,
            random=self._random,
            validation=validation,
            warnings=warnings,
            manner=manner,
            schema=schema,
        )


class _Candidate(NamedTuple):
    """An object of the request that may be written."""

    key: ObjectKey
    intent: Intent
    outcome: ObjectResult
    """What is answered if it is written as planned; in a dry run, in any case."""
    warnings: tuple[str, ...]
    admitted: Document | None
    """As it would be stored; None: it stays as it is."""


async def apply(
    bus: Bus,
    view: DocumentView,
    admitter: Admitter,
    request: ApplyRequest,
    author: Author,
    charging: Charging | None = None,
) -> tuple[ObjectResult, ...]:
    """Carry out a request; results in its order.

    :param charging: the quotas that objects are held to; None: those of `view`
    """
    if request.admitted and not request.dry_run:
        return tuple(_undone(_NO_DRY_RUN) for _ in request.objects)
    if request.expected and len(request.expected) != len(request.objects):
        return tuple(_undone(_EACH_EXPECTED) for _ in request.objects)
    charging = charging or Charging(bus, view)
    application = _Application(view, admitter, request)
    read = [application.read(raw) for raw in request.objects]
    expected = request.expected or (None,) * len(read)
    await _look_up(bus, application, read, expected)
    checked = await _within_quotas(charging, list(map(application.check, read, expected)))
    refused = sum(isinstance(one, ObjectResult) for one in checked)
    if refused and not request.partial:
        return tuple(one if isinstance(one, ObjectResult) else _not_written(one.key, refused) for one in checked)
    if request.dry_run:
        return _rehearsed(checked, shown=request.admitted)
    candidates = [one for one in checked if isinstance(one, _Candidate)]
    written = await writes.carry_out(bus, [one.intent for one in candidates], author, charging)
    results.note(view, written)
    answers = iter(written)
    return tuple(
        one if isinstance(one, ObjectResult) else _answer(one.key, next(answers), one.warnings) for one in checked
    )


async def _within_quotas(
    charging: Charging, checked: "Sequence[_Candidate | ObjectResult]"
) -> "list[_Candidate | ObjectResult]":
    """The same, with those refused that exceed a quota as it stands now: before anything is written."""
    candidates = [(at, one) for at, one in enumerate(checked) if isinstance(one, _Candidate)]
    refusals = await charging.refusals([one.intent for _, one in candidates])
    found = list(checked)
    for number, error in refusals.items():
        at, candidate = candidates[number]
        found[at] = results.forbidden(error, candidate.key)
    return found


def _rehearsed(checked: "Sequence[_Candidate | ObjectResult]", *, shown: bool) -> tuple[ObjectResult, ...]:
    """The answer of a dry run. A Secret's values are in no answer."""
    found: list[ObjectResult] = []
    size = 0
    for one in checked:
        if isinstance(one, ObjectResult):
            found.append(one)
        elif not shown or one.admitted is None or one.key.resource == secrets.RESOURCE:
            found.append(one.outcome)
        else:
            encoded = msgspec.json.encode(one.admitted)
            size += len(encoded)
            told = msgspec.structs.replace(one.outcome, admitted=(msgspec.Raw(encoded),))
            found.append(told if size <= SHOWN_BYTES else _undone(_TOO_MANY))
    return tuple(found)


def _undone(why: str) -> ObjectResult:
    return results.result("refused", ObjectKey("", "", ""), message=why)


async def _look_up(
    bus: Bus,
    application: "_Application",
    read: "list[_Read | ObjectResult]",
    expected: Sequence[int | None],
) -> None:
    """Read what the view has put aside of the request's objects, and those that the sender knows at another
    version than the view: it may be behind. What cannot be read now counts as unknown: a compare-and-set
    finds out.

    docs/rules.md, what-is-put-aside-is-read-before-it-changes"""
    wanted = [
        one.key
        for one, version in zip(read, expected, strict=True)
        if isinstance(one, _Read) and application.must_look(one.key, version)
    ]
    of_kinds = {one.kind.resource: one.kind for one in read if isinstance(one, _Read) and one.kind.custom}
    described = {application.definition_to_read(kind) for kind in of_kinds.values()}
    wanted += [key for key in described if key is not None and key not in wanted]
    if not wanted:
        return
    for key, stored in zip(wanted, await writes.read_all(bus, wanted), strict=True):
        if isinstance(stored, Stored):
            application.know(key, stored)


def other_than_node(request: ApplyRequest, node: str) -> tuple[ObjectResult, ...]:
    """The refusal of a request that may write the object of this node alone; empty if it does."""
    found: list[ObjectResult] = []
    foreign = False
    for raw in request.objects:
        reference = ObjectRef(resource="", name="")
        try:
            document = decoding.document(raw)
            reference = _reference(document)
            if admission.kind_of(document).resource == subjects.NODES and reference.name == node:
                found.append(results.result("refused", ObjectKey(subjects.NODES, "", node), message=_BESIDE))
                continue
            error: ObjectError = ObjectError("metadata.name", f"the agent of node {node} may write that node alone")
        except ObjectError as wrong:
            error = wrong
        foreign = True
        found.append(results.failure(error, reference))
    return tuple(found) if foreign else ()


class _Read(NamedTuple):
    """An object of the request as it came."""

    document: Document
    reference: ObjectRef
    kind: Kind
    key: ObjectKey
    """Without a name if that is to be generated."""


class _Application:
    """One request while it is checked."""

    def __init__(self, view: DocumentView, admitter: Admitter, request: ApplyRequest) -> None:
        self._view = view
        self._admitter = admitter
        self._create_only = request.create_only
        self._validation: admission.Validation = request.validation
        self._manner: admission.Manner = request.manner
        self._lookup = RequestLookup(view)
        self._known: dict[ObjectKey, Stored] = {}
        """Read for this request."""
        self._templates = PodTemplates(admitter.new_uid)

    def must_look(self, key: ObjectKey, expected: int | None) -> bool:
        """Whether what is stored there has to be read.

        :param expected: the sequence of the version that the sender knows
        """
        if not key.name:
            return False
        if self._view.put_aside(key):
            return True
        return expected is not None and intents.sequence_of(self._view.stored(key)) != expected

    def know(self, key: ObjectKey, stored: Stored) -> None:
        """This is stored there."""
        self._known[key] = stored
        self._lookup.know(key, stored)

    def definition_to_read(self, kind: Kind) -> ObjectKey | None:
        """The definition of a custom kind, if it has to be read before its schema is known."""
        definition = definitions.definition_of(kind, self._lookup) if kind.custom else None
        key = ObjectKey(DEFINITIONS, "", definition.metadata.name) if definition is not None else None
        return key if key is not None and self._view.put_aside(key) else None

    def read(self, raw: msgspec.Raw) -> _Read | ObjectResult:
        """Which object it is; an `ObjectResult` says why it is none."""
        reference = ObjectRef(resource="", name="")
        try:
            document = decoding.document(raw)
            reference = _reference(document)
            kind = admission.kind_of(document)
            stored = definitions.stored_as(kind, definitions.definition_of(kind, self._lookup)) if kind.custom else kind
        except ObjectError as error:
            return results.failure(error, reference)
        return _Read(document, reference, kind, _key(stored, document))

    def check(self, read: _Read | ObjectResult, expected: int | None = None) -> _Candidate | ObjectResult:
        """Admit one object as it would be written now; an `ObjectResult` says why it cannot be.

        :param expected: the sequence of the version that it may take the place of; 0: of none; None: of any
        """
        if isinstance(read, ObjectResult):
            return read
        document, reference, kind, key = read
        warnings: list[str] = []
        try:
            if kind.custom:
                kind, key = self._as_defined(kind, document)
            stored = self._known.get(key) or (self._view.stored(key) if key.name else None)
            step, admitted_key = self._decide(kind, document, stored, self._lookup.staged(key), warnings)
        except (ObjectError, ClusterError) as error:
            return results.failure(error, reference)
        except (
            Exception
        ) as error:  # boundary: what admission stumbles over is refused, the request's other objects are not
            return results.failure(_stumbled(error, reference), reference)
        key = admitted_key
        plan = self._plan(kind, document, stored, step)
        if expected is not None:
            plan = intents.of_version(key, plan, expected)
        uid = step.document["metadata"]["uid"] if isinstance(step, Put) else stored.uid if stored else ""
        outcome = _outcome_of(key, step, stored, uid, 0)
        if isinstance(step, Put):
            self._lookup.stage(key, step.document)
        if heed := acting.unheeded(kind):
            warnings.append(heed)
        outcome = msgspec.structs.replace(outcome, warnings=tuple(warnings)) if warnings else outcome
        admitted = step.document if isinstance(step, Put) else None
        return _Candidate(key, Intent(key, plan, stored), outcome, tuple(warnings), admitted)

    def _as_defined(self, kind: Kind, document: Document) -> tuple[Kind, ObjectKey]:
        """As what a custom object is stored by its definition, and where, if one is stored or stands before
        it in the request.

        :raises UnknownKindError: the definition does not serve its version
        """
        definition = definitions.definition_of(kind, self._lookup)
        definitions.check_version(kind, definition)
        kind = definitions.stored_as(kind, definition)
        document["apiVersion"] = kind.api_version
        key = _key(kind, document)
        namespace = definitions.namespace_of(kind, definition, key.namespace)
        metadata = document.get("metadata")
        if namespace != key.namespace and isinstance(metadata, dict):
            metadata["namespace"] = namespace
            if not namespace:
                del metadata["namespace"]
        return kind, ObjectKey(key.resource, namespace, key.name)

    def _decide(
        self,
        kind: Kind,
        document: Document,
        stored: Stored | None,
        staged: Document | None,
        warnings: list[str],
    ) -> tuple[Step, ObjectKey]:
        """The step for one version of the object, and where the object belongs (its name may be generated).

        :raises ObjectError: it is refused
        """
        there = intents.living(stored)
        old = staged if staged is not None else (there.document() if there is not None else None)
        if old is not None and self._create_only:
            key = _key(kind, document)
            raise ObjectExists(key, old["metadata"]["uid"], 0 if there is None else there.sequence)
        if old is None and self._manner != "apply" and not self._create_only:
            raise ObjectMissing(_key(kind, document))
        sealed, vault = kind.resource == secrets.RESOURCE, self._admitter.vault
        if sealed and old is not None:
            old = vault.open(old)
        if old is not None and self._manner != "status":
            document = read_back.without_joined(kind.resource, document, old, self._view.node_of)
        admitted = self._admit(kind, document, old, warnings)
        key = intents.key_of(kind.resource, admitted)
        if admitted == old:
            return Keep(), key
        if old is not None and finalizing.waits(old) and not finalizing.keeps(kind.resource, admitted):
            return Remove(), key
        actions = ("Add",) if old is None else _actions(kind.resource, old, admitted)
        return Put(vault.seal(admitted) if sealed else admitted, actions), key

    def _admit(self, kind: Kind, document: Document, old: Document | None, warnings: list[str]) -> Document:
        schema = definitions.schema_of(kind, self._lookup) if kind.custom else None

        def admit() -> Document:
            return self._admitter.admit(document, self._lookup, old, self._validation, warnings, self._manner, schema)

        if kind.resource == subjects.PODS and old is None:
            return self._templates.admit(document, admit)
        self._templates.forget()
        return admit()

    def _plan(self, kind: Kind, document: Document, expected: Stored | None, step: Step) -> intents.Plan:
        """As decided for the version that the check saw; decided again for any other."""

        def plan(stored: Stored | None) -> Step:
            if stored is expected:
                return step
            if isinstance(step, Put) and not _metadata(document).get("name"):
                return intents.creation(intents.key_of(kind.resource, step.document), step.document)(stored)
            return self._decide(kind, document, stored, None, [])[0]

        return plan


def _stumbled(error: Exception, reference: ObjectRef) -> ObjectError:
    """A fault of admission itself. Of a Secret it says no more than its type: its words may hold a value."""
    where = (reference.resource, reference.namespace, reference.name)
    if reference.resource == "Secret":
        log.error("admission failed on %s %s/%s: %s", *where, type(error).__name__)
        return ObjectError("", f"admission failed on it ({type(error).__name__})")
    log.exception("admission failed on %s %s/%s", *where)
    return ObjectError("", f"admission failed on it ({type(error).__name__}: {error})")


def _metadata(document: Document) -> Document:
    return mapping(document, "metadata")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _reference(document: Document) -> ObjectRef:
    """How the answer names an object that may be of no kind."""
    metadata = _metadata(document)
    return ObjectRef(
        resource=_text(document.get("kind")),
        namespace=_text(metadata.get("namespace")),
        name=_text(metadata.get("name")) or _text(metadata.get("generateName")),
    )


def _key(kind: Kind, document: Document) -> ObjectKey:
    """Where the object belongs; without a name if that is to be generated."""
    metadata = _metadata(document)
    namespace = _text(metadata.get("namespace"))
    if not kind.custom:
        namespace = (namespace or admission.DEFAULT_NAMESPACE) if kind.namespaced else ""
    return ObjectKey(kind.resource, namespace, _text(metadata.get("name")))


def _actions(resource: str, old: Document, new: Document) -> tuple[ActionName, ...]:
    """What the change is, for people who watch; readers work it out by themselves."""
    if resource not in (subjects.PODS, subjects.NODES):
        return ()
    before, after = (decoding.decode(resource, msgspec.json.encode(one)) for one in (old, new))
    classified: Any = classify.classify_pod if resource == subjects.PODS else classify.classify_node
    found = [action for _, action in classified(before, after) if action != ActionType.UPDATE]
    return tuple(name for action in dict.fromkeys(found) for name in actions.names(action))


def _outcome_of(key: ObjectKey, step: Step, before: Stored | None, uid: str, position: int) -> ObjectResult:
    if isinstance(step, Keep):
        return results.result("unchanged", key, uid=uid, position=before.sequence if before is not None else position)
    if isinstance(step, Remove):
        return results.result("deleted", key, uid=uid, position=position, message=LAST_FINALIZER)
    replaced = intents.living(before) is not None
    return results.result("configured" if replaced else "created", key, uid=uid, position=position)


def _answer(key: ObjectKey, written: writes.Result, warnings: tuple[str, ...]) -> ObjectResult:
    if not isinstance(written, Written):
        return results.failure(written, key)
    step = written.step
    before = written.before
    uid = step.document["metadata"]["uid"] if isinstance(step, Put) else (before.uid if before is not None else "")
    outcome = _outcome_of(written.key, step, before, uid, written.sequence)
    return msgspec.structs.replace(outcome, warnings=warnings) if warnings else outcome


def _not_written(key: ObjectKey, refused: int) -> ObjectResult:
    others = "1 other object" if refused == 1 else f"{refused} other objects"
    return results.result("refused", key, message=f"nothing was written: {others} of the request cannot be")
