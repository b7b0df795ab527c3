"""`reveal`: the values of Secrets, for those who may ask."""

from podyard.api import naming
from podyard.api.vault import Vault
from podyard.bus.connection import Bus
from podyard.bus.errors import BusError
from podyard.cluster import intents
from podyard.cluster.keys import ObjectKey
from podyard.objects import secrets
from podyard.objects.documents import mapping
from podyard.objects.errors import ObjectError
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import RevealedSecret, RevealRequest
from podyard.shell import writes


async def reveal(bus: Bus, vault: Vault, request: RevealRequest) -> tuple[RevealedSecret, ...]:
    """The values, in the order of the request; for each that cannot be shown, why."""
    keys = [_key(reference) for reference in request.secrets]
    known = [key for key in keys if isinstance(key, ObjectKey)]
    found = dict(zip(known, await writes.read_all(bus, known), strict=True))
    return tuple(_shown(vault, key, found.get(key)) if isinstance(key, ObjectKey) else key for key in keys)


def _key(reference: ObjectRef) -> ObjectKey | RevealedSecret:
    try:
        key = naming.key_of(reference)
    except ObjectError as error:
        return RevealedSecret(name=reference.name, namespace=reference.namespace, fault=str(error))
    if key.resource != secrets.RESOURCE:
        return RevealedSecret(name=key.name, namespace=key.namespace, fault=f"{key.resource} are no secrets")
    return key


def _shown(vault: Vault, key: ObjectKey, stored: intents.Stored | BusError | None) -> RevealedSecret:
    shown = RevealedSecret(namespace=key.namespace, name=key.name, fault="not found")
    if isinstance(stored, BusError):
        return RevealedSecret(namespace=key.namespace, name=key.name, fault=str(stored))
    there = intents.living(stored)
    if there is None:
        return shown
    try:
        data = mapping(vault.open(there.document()), "data")
    except (ObjectError, MessageError) as error:
        return RevealedSecret(namespace=key.namespace, name=key.name, uid=there.uid, fault=str(error))
    return RevealedSecret(namespace=key.namespace, name=key.name, uid=there.uid, data=data)
