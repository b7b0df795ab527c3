"""What is used of the quotas of a namespace once an object is written, and whether that is too much. Pure.

Source: kubernetes v1.36.2, staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go
(CheckRequest, prettyPrint).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from podyard.cluster.documents import DocumentView
from podyard.cluster.errors import QuotaExceeded
from podyard.cluster.intents import Document, Stored, living
from podyard.cluster.keys import ObjectKey
from podyard.objects import decoding, quantity, quota_usage
from podyard.objects.kinds import kind_of_resource
from podyard.objects.quotas import QUOTAS, ResourceQuota
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.facts import QuotaUsageFact

Amounts: TypeAlias = dict[str, int]
"""Nano-units by the names of quotas."""


class Account(NamedTuple):
    """A quota, and what is used of it."""

    quota: ResourceQuota
    fact: QuotaUsageFact | None
    """None: it is not counted yet."""
    sequence: int
    """Of the fact; 0 if there is none."""

    @property
    def name(self) -> str:
        return self.quota.metadata.name


def quotas_in(documents: DocumentView, namespace: str) -> list[ResourceQuota]:
    """The quotas of a namespace, by name."""
    found: Iterable[ResourceQuota] = documents.all(QUOTAS)
    return sorted((one for one in found if one.metadata.namespace == namespace), key=lambda one: one.metadata.name)


def subject_of(quota: ResourceQuota) -> str:
    """Where its fact lies."""
    metadata = quota.metadata
    return subjects.quota_usage(metadata.namespace, metadata.name, metadata.uid)


def account_of(quota: ResourceQuota, stored: Stored | None) -> Account:
    """A quota with what is stored of its usage. What cannot be read counts as not counted yet."""
    if stored is None or stored.deleted:
        return Account(quota, None, 0 if stored is None else stored.sequence)
    try:
        return Account(quota, codec.decode(QuotaUsageFact, stored.payload), stored.sequence)
    except MessageError:
        return Account(quota, None, stored.sequence)


def may_count(quotas: Sequence[ResourceQuota], resource: str, before: Stored | None) -> bool:
    """Whether one of the quotas may count what a write makes of an object; only judging says whether it
    does."""
    if living(before) is not None and resource not in quota_usage.GROW:
        return False
    return any(quota_usage.counted(resource, quota.spec.hard) for quota in quotas)


def judge(
    accounts: Sequence[Account], key: ObjectKey, before: Stored | None, document: Document
) -> list[Account] | None:
    """What the accounts are once `document` is written in the place of `before`; None: it takes nothing of
    them.

    :raises QuotaExceeded: a quota does not allow it
    """
    resource = key.resource
    new: Any = decoding.view(kind_of_resource(resource), document)
    there = living(before)
    old: Any = None if there is None else there.view()
    taken = quota_usage.usage(resource, new)
    grown = taken if old is None else _above(taken, quota_usage.usage(resource, old))
    if resource == quota_usage.PODS and old is not None and not any(grown.values()) and _same_deadline(old, new):
        return None  # Source: podEvaluator.Handles
    after: list[Account] = []
    for account in accounts:
        quota = account.quota
        if not quota_usage.matches(quota, resource, new):
            after.append(account)
            continue
        fact = _checked(account, key, new)
        counts_old = old is not None and quota_usage.matches(quota, resource, old)
        amounts = {name: nano for name, nano in (grown if counts_old else taken).items() if nano}
        after.append(account._replace(fact=_charged(quota, fact, key, amounts)))
    return None if after == list(accounts) else after


def _checked(account: Account, key: ObjectKey, new: Any) -> QuotaUsageFact:
    """The fact of a quota that counts an object.

    :raises QuotaExceeded: the object does not say what the quota demands, or the quota is not counted yet
    """
    names = quota_usage.counted(key.resource, account.quota.spec.hard)
    if lacking := quota_usage.lacking(key.resource, new, names):
        raise QuotaExceeded(key, f"failed quota: {account.name}: {lacking}")
    if account.fact is None or any(name not in account.fact.used for name in names):
        detail = f"status unknown for quota: {account.name}, resources: {','.join(names)}"
        raise QuotaExceeded(key, f"{detail}; workloads has not counted it yet: try again")
    return account.fact


def _charged(quota: ResourceQuota, fact: QuotaUsageFact, key: ObjectKey, amounts: Amounts) -> QuotaUsageFact:
    hard = quota.spec.hard
    requested = {name: nano for name, nano in amounts.items() if name in hard}
    used = {name: quantity.nano(fact.used.get(name, "0")) for name in requested}
    exceeded = [name for name, nano in requested.items() if used[name] + nano > quantity.nano(hard[name])]
    if exceeded:
        asked, taken = (_listed(amounts, exceeded) for amounts in (requested, used))
        limited = ",".join(f"{name}={hard[name]}" for name in sorted(exceeded))
        raise QuotaExceeded(
            key, f"exceeded quota: {quota.metadata.name}, requested: {asked}, used: {taken}, limited: {limited}"
        )
    sums = {name: quota_usage.spelled(name, used[name] + nano) for name, nano in requested.items()}
    return msgspec.structs.replace(fact, used={**fact.used, **sums})


def _same_deadline(old: Any, new: Any) -> bool:
    return quota_usage.has_deadline(old) == quota_usage.has_deadline(new)


def _above(amounts: Amounts, before: Mapping[str, int]) -> Amounts:
    """Source: SubtractWithNonNegativeResult."""
    return {name: max(0, nano - before.get(name, 0)) for name, nano in amounts.items()}


def _listed(amounts: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={quota_usage.spelled(name, amounts[name])}" for name in sorted(names))
