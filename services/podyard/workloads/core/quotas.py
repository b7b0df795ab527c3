"""ResourceQuota: how much of each is used. Sums are kept as objects change; of namespaces without a quota
nothing is.

Whoever creates what a quota counts adds to its usage in the same batch (`shell.charging`). Here it is counted
from what is there, and written where that differs: what ended or was deleted is free again, and drift is put
right. The write is a compare-and-set on the usage that the view shows: whatever was charged meanwhile is not
lost.

Source: kubernetes v1.36.2, pkg/controller/resourcequota/resource_quota_controller.go (syncResourceQuota),
pkg/quota/v1/evaluator/core/pods.go (QuotaV1Pod).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.cluster.pods import PodView
from podyard.objects import quantity, quota_usage, times
from podyard.objects.pod import ENDED
from podyard.objects.quotas import QUOTAS, ResourceQuota, ResourceQuotaSpec
from podyard.proto import subjects
from podyard.proto.facts import QuotaUsageFact
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Usage
from podyard.workloads.core.looking import Looked
from podyard.workloads.core.ownership import View


class _Counted:
    """A quota, what each object takes of it, and the sums, in nano-units by resource."""

    __slots__ = ("free_at", "spec", "sums", "taken", "uid")

    def __init__(self, quota: ResourceQuota) -> None:
        self.uid = quota.metadata.uid
        self.spec: ResourceQuotaSpec = quota.spec
        self.taken: dict[ObjectKey, dict[str, int]] = {}
        self.sums = dict.fromkeys(filter(quota_usage.is_counted_at_all, quota.spec.hard), 0)
        self.free_at: dict[ObjectKey, float] = {}
        """When pods that are being deleted take no room any more, seconds since 1970."""

    def take(self, key: ObjectKey, amounts: dict[str, int]) -> bool:
        """From now on the object takes so much; returns whether that is another amount."""
        before = self.taken.pop(key, {})
        if amounts:
            self.taken[key] = amounts
        if before == amounts:
            return False
        for name, nano in before.items():
            self.sums[name] -= nano
        for name, nano in amounts.items():
            self.sums[name] += nano
        return True


class QuotaCounts:
    """Quotas and what is used of them. Owned by the core; kept by `follow`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._quotas: dict[NamespacedName, _Counted] = {}
        self._in: dict[str, dict[NamespacedName, None]] = {}
        self._new: dict[NamespacedName, None] = {}
        """Quotas for which was not counted yet what is there."""

    # ---- following -----------------------------------------------------------------------------------------

    def follow(self, change: Change) -> list[ObjectKey]:
        """One object changed; returns the quotas of which another amount is used now."""
        key = change.key
        marked = self._follow_quota(key) if key.resource == QUOTAS else []
        for quota in self._in.get(key.namespace, ()):
            if self._count(quota, key):
                marked.append(ObjectKey(QUOTAS, *quota))
        return marked

    def left_over(self) -> Iterable[ObjectKey]:
        """Quotas that are gone and whose usage is stored."""
        quotas: Mapping[NamespacedName, ResourceQuota] = self._view.objects(QUOTAS)
        return [ObjectKey(QUOTAS, *key[:2]) for key in self._view.quota_usages if key[:2] not in quotas]

    def _follow_quota(self, key: ObjectKey) -> list[ObjectKey]:
        found: ResourceQuota | None = self._view.objects(QUOTAS).get(key.namespaced_name)
        known = self._quotas.get(key.namespaced_name)
        if found is None or known is None or (known.uid, known.spec) != (found.metadata.uid, found.spec):
            self._begin(key.namespaced_name, found)
        return [key]

    def _begin(self, key: NamespacedName, quota: ResourceQuota | None) -> None:
        if quota is None:
            self._quotas.pop(key, None)
            found = self._in.get(key[0], {})
            found.pop(key, None)
            if not found:
                self._in.pop(key[0], None)
            return
        self._quotas[key] = _Counted(quota)
        self._in.setdefault(key[0], {})[key] = None
        self._new[key] = None

    def _count_new(self) -> None:
        """Count what is there for quotas that are new, or another: all objects are gone through once, however
        many quotas there are."""
        new = [key for key in self._new if key in self._quotas]
        self._new.clear()
        namespaces = {key[0] for key in new}
        for resource in (subjects.PODS, *self._view.resources) if new else ():
            wanted = [key for key in new if quota_usage.counted(resource, self._quotas[key].spec.hard)]
            places = self._view.pods if resource == subjects.PODS else self._view.objects(resource)
            for place in places if wanted else ():
                if place[0] in namespaces:
                    for key in wanted:
                        if key[0] == place[0]:
                            self._count(key, ObjectKey(resource, *place))

    def _count(self, quota_key: NamespacedName, key: ObjectKey, now: float = 0.0) -> bool:
        """Count an object as it is; returns whether the quota is to be looked at: the object takes another
        amount now, or will.

        :param now: seconds since 1970; 0: whatever is being deleted takes room still
        """
        counted = self._quotas[quota_key]
        quota = self._view.objects(QUOTAS).get(quota_key)
        names = quota_usage.counted(key.resource, counted.spec.hard)
        if not names or quota is None:
            return False
        item = self._find(key)
        counted.free_at.pop(key, None)
        if item is None:
            return counted.take(key, {})
        ended, will_be_free = False, False
        if isinstance(item, PodView):
            ended, free_at = pod_facts.phase(item) in ENDED, _free_at(item)
            if free_at is not None and not ended:
                ended, will_be_free = free_at < now, free_at >= now
                counted.free_at[key] = free_at
            item = item.pod
        if not quota_usage.matches(quota, key.resource, item):
            return counted.take(key, {}) or will_be_free
        taken = quota_usage.usage(key.resource, item, ended=ended)
        return counted.take(key, {name: taken[name] for name in names if taken.get(name)}) or will_be_free

    def _find(self, key: ObjectKey) -> Any | None:
        if key.resource == subjects.PODS:
            return self._view.pods.get(key.namespaced_name)
        return self._view.objects(key.resource).get(key.namespaced_name)

    # ---- looking -------------------------------------------------------------------------------------------

    def look(self, key: ObjectKey, quota: ResourceQuota, now: float) -> Looked:
        """What is to be stored of a quota: what is used if something else is stored, and markers for those
        that had its name before."""
        counted = self._quotas.get(key.namespaced_name)
        if counted is None or counted.uid != quota.metadata.uid:
            return Looked()
        self._count_new()
        for pod, at in list(counted.free_at.items()):
            if at < now:
                self._count(key.namespaced_name, pod, now)
                counted.free_at.pop(pod, None)
        usages = [self._marker(key, uid) for uid in self._stored_uids(key) if uid != counted.uid]
        fact = self._view.quota_usages.get((key.namespace, key.name, counted.uid))
        if fact is None or fact.hard != quota.spec.hard or not _says(fact, counted.sums):
            usages.append(self._usage(key, counted, quota))
        again_at = min(counted.free_at.values(), default=None)
        return Looked(usages=usages, again_at=None if again_at is None else again_at + 1.0)

    def gone(self, key: ObjectKey) -> Looked:
        """What is to be stored of a quota that is not there any more."""
        return Looked(usages=[self._marker(key, uid) for uid in self._stored_uids(key)])

    def _stored_uids(self, key: ObjectKey) -> list[str]:
        return [uid for namespace, name, uid in self._view.quota_usages if (namespace, name) == key.namespaced_name]

    def _marker(self, key: ObjectKey, uid: str) -> Usage:
        return Usage(uid, None, self._view.version_of(subjects.quota_usage(key.namespace, key.name, uid)))

    def _usage(self, key: ObjectKey, counted: _Counted, quota: ResourceQuota) -> Usage:
        used = {name: quota_usage.spelled(name, nano) for name, nano in sorted(counted.sums.items())}
        fact = QuotaUsageFact(
            namespace=key.namespace, name=key.name, uid=counted.uid, hard=dict(quota.spec.hard), used=used
        )
        expect = self._view.version_of(subjects.quota_usage(key.namespace, key.name, counted.uid))
        return Usage(counted.uid, fact, expect)


def _says(fact: QuotaUsageFact, sums: Mapping[str, int]) -> bool:
    return {name: quantity.nano(text) for name, text in fact.used.items()} == sums


def _free_at(pod: PodView) -> float | None:
    """When a pod that is being deleted takes no room any more, wherever it hangs, seconds since 1970; None:
    it is not being deleted. Source: QuotaV1Pod, which adds the grace period to a time that has it already."""
    metadata = pod.stored.metadata
    ends = times.seconds_or(metadata.deletion_timestamp, None)
    if ends is None or metadata.deletion_grace_period_seconds is None:
        return None
    return ends + metadata.deletion_grace_period_seconds
