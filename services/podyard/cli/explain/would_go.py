"""Asking a scheduler where a pod would go. Shell: reads, a dry run by the api, requests."""

from collections.abc import Collection, Sequence
from typing import Final

import anyio
import msgspec

from podyard.bus.connection import Bus
from podyard.bus.errors import Busy, NoResponders, RemoteError, RequestTimeout
from podyard.cli import files as file_reader
from podyard.cli import objects_client
from podyard.cli.errors import CliError, InputError
from podyard.cli.explain import candidates
from podyard.cli.explain.candidates import Candidate
from podyard.objects.manifests import Manifest
from podyard.proto import codec, subjects
from podyard.proto.objects_api import ObjectResult
from podyard.proto.scheduler_api import WouldGoReply, WouldGoRequest
from podyard.proto.streams import CLUSTER, MAX_BATCH

ANSWER_S: Final = 10.0
"""How long a person waits for one answer: a scheduler may have others before."""
MOST_PODS: Final = 64
"""Of one command: each takes a scheduler the time of a cycle."""


class WouldGo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What was found of one pod of a file. Without a reply the api refuses it, and `refused` says why."""

    about: str
    namespace: str
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    reply: WouldGoReply | None = None


class Answers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Of the files of one command."""

    pods: tuple[WouldGo, ...]
    warnings: tuple[str, ...] = ()
    """What the api says of them besides."""
    not_pods: tuple[str, ...] = ()
    """Objects of the files that make no pods, and count as not there."""


async def of_stored(bus: Bus, namespace: str, name: str, limit: int) -> WouldGoReply:
    """Where a stored pod would go now.

    :param limit: nodes that are told by name
    :raises CliError: if there is no such pod, or no scheduler answers
    """
    stored = await bus.get(CLUSTER.name, subjects.object_(subjects.PODS, namespace, name))
    if stored is None or stored.deleted:
        advice = f"`podyard get pods -n {namespace}` lists those there are"
        raise CliError(f'no pod "{name}" in namespace "{namespace}"', advice)
    return await _ask(
        bus, WouldGoRequest(pod=codec.NULL, namespace=namespace, name=name, position=stored.sequence, limit=limit)
    )


async def of_files(bus: Bus, files: Sequence[str], namespace: str | None, limit: int) -> Answers:
    """Where the pods of files would go, each by itself.

    :raises InputError: with all that is wrong with the files, or if they make no pods
    :raises CliError: if the api or no scheduler answers
    """
    manifests = file_reader.read_all(files)
    for manifest in manifests:
        file_reader.settle_namespace(manifest, namespace)
    stored = [one for one in candidates.claims(manifests) if await _is_there(bus, "persistentvolumeclaims", one)]
    taken = [
        key
        for manifest in manifests
        if manifest.kind.kind == "Pod"
        and await _is_there(bus, subjects.PODS, key := (manifest.namespace, manifest.name))
    ]
    found = [(manifest, candidates.of(manifest, taken, stored)) for manifest in manifests]
    pods = [pod for _, pod in found if pod is not None]
    _check_number(manifests, pods)
    others = [manifest for manifest, _ in found if manifest.kind.kind != "Pod"]
    results = await objects_client.apply(
        bus,
        [*(one.document for one in others), *(pod.document for pod in pods)],
        dry_run=True,
        partial=True,
        admitted=True,
        validation="strict",
    )
    warnings = [
        f"{candidates.about(one)} would be refused: {result.reason}"
        for one, result in zip(others, results, strict=False)
        if result.outcome not in objects_client.GOOD
    ]
    told = [await _of_pod(bus, pod, result, limit) for pod, result in zip(pods, results[len(others) :], strict=True)]
    warnings += [warning for result in results for warning in result.warnings]
    not_pods = tuple(candidates.about(manifest) for manifest, pod in found if pod is None)
    return Answers(pods=tuple(told), warnings=tuple(dict.fromkeys(warnings)), not_pods=not_pods)


def _check_number(manifests: Collection[Manifest], pods: Collection[Candidate]) -> None:
    """
    :raises InputError: there are no pods to ask about, or too many
    """
    if not pods:
        kinds = ", ".join(candidates.TEMPLATES)
        raise InputError("nothing in the file makes pods", f"give a Pod, or one of {kinds}")
    if len(pods) > MOST_PODS or len(manifests) + len(pods) > MAX_BATCH - objects_client.MOST_LEANT_ON:
        raise InputError(
            f"{len(pods)} pods in {len(manifests)} objects are too many for one question",
            f"ask about {MOST_PODS} at most",
        )


async def _is_there(bus: Bus, resource: str, key: tuple[str, str]) -> bool:
    namespace, name = key
    if not name:
        return False
    stored = await bus.get(CLUSTER.name, subjects.object_(resource, namespace, name))
    return stored is not None and not stored.deleted


async def _of_pod(bus: Bus, pod: Candidate, result: ObjectResult, limit: int) -> WouldGo:
    told = WouldGo(about=pod.about, namespace=pod.document["metadata"]["namespace"], notes=pod.notes)
    if result.outcome not in objects_client.GOOD or not result.admitted:
        refused = tuple(f"{one.field}: {one.detail}" for one in result.errors) or (result.reason,)
        return msgspec.structs.replace(told, refused=refused)
    try:
        request = WouldGoRequest(pod=result.admitted[0], limit=limit)
        return msgspec.structs.replace(told, reply=await _ask(bus, request))
    except InputError as error:
        return msgspec.structs.replace(told, refused=(error.message,))


async def _ask(bus: Bus, request: WouldGoRequest) -> WouldGoReply:
    """
    :raises InputError: the scheduler says why it does not answer
    :raises CliError: no scheduler answers
    """
    payload = codec.encode(request)
    end = anyio.current_time() + ANSWER_S
    while True:
        try:
            answer = await bus.request(
                subjects.SCHEDULER_WOULD, payload, timeout_s=max(0.1, end - anyio.current_time())
            )
        except NoResponders as error:
            advice = "is one running? (`podyard up`, or `podyard run scheduler`)"
            raise CliError("no scheduler answers", advice) from error
        except RequestTimeout as error:
            raise CliError(
                f"no scheduler answered within {ANSWER_S:g} s", "`podyard top` shows what is wrong"
            ) from error
        except RemoteError as error:
            raise InputError(error.reason) from error
        except Busy as error:
            if anyio.current_time() + error.delay_s >= end:
                raise
            await anyio.sleep(error.delay_s)
        else:
            return codec.decode(WouldGoReply, answer.payload)
