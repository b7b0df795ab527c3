"""Which built-in resources are served, and how they are called: as the API server of 1.36 says it."""

import pytest

from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.served import Group, Served
from podyard.objects import kinds

ALL = Catalogue.of([])

API_RESOURCES = """
configmaps                 cm        v1                            true   ConfigMap
endpoints                  ep        v1                            true   Endpoints
events                     ev        v1                            true   Event
limitranges                limits    v1                            true   LimitRange
namespaces                 ns        v1                            false  Namespace
nodes                      no        v1                            false  Node
persistentvolumeclaims     pvc       v1                            true   PersistentVolumeClaim
persistentvolumes          pv        v1                            false  PersistentVolume
pods                       po        v1                            true   Pod
podtemplates               -         v1                            true   PodTemplate
replicationcontrollers     rc        v1                            true   ReplicationController
resourcequotas             quota     v1                            true   ResourceQuota
secrets                    -         v1                            true   Secret
serviceaccounts            sa        v1                            true   ServiceAccount
services                   svc       v1                            true   Service
customresourcedefinitions  crd,crds  apiextensions.k8s.io/v1       false  CustomResourceDefinition
controllerrevisions        -         apps/v1                       true   ControllerRevision
daemonsets                 ds        apps/v1                       true   DaemonSet
deployments                deploy    apps/v1                       true   Deployment
replicasets                rs        apps/v1                       true   ReplicaSet
statefulsets               sts       apps/v1                       true   StatefulSet
selfsubjectaccessreviews   -         authorization.k8s.io/v1       false  SelfSubjectAccessReview
horizontalpodautoscalers   hpa       autoscaling/v2                true   HorizontalPodAutoscaler
cronjobs                   cj        batch/v1                      true   CronJob
jobs                       -         batch/v1                      true   Job
certificatesigningrequests csr       certificates.k8s.io/v1        false  CertificateSigningRequest
leases                     -         coordination.k8s.io/v1        true   Lease
endpointslices             -         discovery.k8s.io/v1           true   EndpointSlice
events                     ev        events.k8s.io/v1              true   Event
ingresses                  ing       networking.k8s.io/v1          true   Ingress
networkpolicies            netpol    networking.k8s.io/v1          true   NetworkPolicy
poddisruptionbudgets       pdb       policy/v1                     true   PodDisruptionBudget
clusterroles               -         rbac.authorization.k8s.io/v1  false  ClusterRole
roles                      -         rbac.authorization.k8s.io/v1  true   Role
priorityclasses            pc        scheduling.k8s.io/v1          false  PriorityClass
storageclasses             sc        storage.k8s.io/v1             false  StorageClass
"""
"""Lines of `kubectl api-resources` 1.36, checked by hand."""


def find(group: str, version: str, resource: str) -> Served:
    found = ALL.find(group, version, resource)
    assert found is not None
    return found


@pytest.mark.parametrize("line", API_RESOURCES.strip().splitlines())
def test_what_kubectl_api_resources_prints(line: str) -> None:
    name, short_names, api_version, namespaced, kind = line.split()
    group, _, version = api_version.rpartition("/")
    one = find(group, version, name)
    assert (",".join(one.short_names) or "-", one.namespaced, one.kind) == (short_names, namespaced == "true", kind)
    assert (one.singular, one.list_kind, one.api_version) == (kind.lower(), f"{kind}List", api_version)


def test_groups_and_versions_stand_in_the_reference_s_order() -> None:
    """Source: kubernetes v1.36.2, api/discovery/aggregated_v2.json, without versions that are left out."""
    assert ALL.groups() == (
        Group("", ("v1",)),
        Group("apiregistration.k8s.io", ("v1",)),
        Group("apps", ("v1",)),
        Group("events.k8s.io", ("v1",)),
        Group("authentication.k8s.io", ("v1",)),
        Group("authorization.k8s.io", ("v1",)),
        Group("autoscaling", ("v2", "v1")),
        Group("batch", ("v1",)),
        Group("certificates.k8s.io", ("v1", "v1beta1")),
        Group("networking.k8s.io", ("v1",)),
        Group("policy", ("v1",)),
        Group("rbac.authorization.k8s.io", ("v1",)),
        Group("storage.k8s.io", ("v1",)),
        Group("admissionregistration.k8s.io", ("v1",)),
        Group("apiextensions.k8s.io", ("v1",)),
        Group("scheduling.k8s.io", ("v1", "v1alpha2")),
        Group("coordination.k8s.io", ("v1", "v1beta1")),
        Group("node.k8s.io", ("v1",)),
        Group("discovery.k8s.io", ("v1",)),
        Group("resource.k8s.io", ("v1", "v1beta2", "v1alpha3")),
        Group("flowcontrol.apiserver.k8s.io", ("v1",)),
        Group("internal.apiserver.k8s.io", ("v1alpha1",)),
        Group("storagemigration.k8s.io", ("v1beta1",)),
        Group("metrics.k8s.io", ("v1beta1",)),
    )


def test_every_kind_that_is_stored_is_served_once_and_autoscalers_in_both_versions() -> None:
    left_out = [one for one in ALL if one.is_events or one.api_version == "autoscaling/v1"]
    stored = [one.stored for one in ALL if one.stored is not None and one not in left_out]
    assert sorted(stored, key=str) == sorted((*kinds.KINDS, *kinds.stored()), key=str)


def test_events_lie_elsewhere_and_all_is_done_with_them() -> None:
    verbs = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    assert [(one.api_version, one.kind, one.verbs, one.short_names) for one in ALL if one.is_events] == [
        ("v1", "Event", verbs, ("ev",)),
        ("events.k8s.io/v1", "Event", verbs, ("ev",)),
    ]


def test_what_is_served_and_not_stored_is_told_or_asked() -> None:
    assert [(one.api_version, one.kind, one.verbs) for one in ALL if one.stored is None] == [
        ("v1", "Binding", ("create",)),
        ("authentication.k8s.io/v1", "SelfSubjectReview", ("create",)),
        ("authentication.k8s.io/v1", "TokenReview", ("create",)),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview", ("create",)),
        ("metrics.k8s.io/v1beta1", "NodeMetrics", ("get", "list")),
        ("metrics.k8s.io/v1beta1", "PodMetrics", ("get", "list")),
    ]


def test_a_version_that_is_not_stored_is_not_served() -> None:
    assert ALL.find("resource.k8s.io", "v1beta2", "resourceclaims") is None


def test_what_kubectl_get_all_shows() -> None:
    """In the order in which kubectl asks for them: in the preferred version alone."""
    assert [one.resource for one in ALL if "all" in one.categories] == [
        *("pods", "replicationcontrollers", "services"),
        *("daemonsets", "deployments", "replicasets", "statefulsets"),
        *("horizontalpodautoscalers", "horizontalpodautoscalers", "cronjobs", "jobs"),
    ]
    assert find("apiextensions.k8s.io", "v1", "customresourcedefinitions").categories == ("api-extensions",)


def test_verbs() -> None:
    most = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    assert find("", "v1", "pods").verbs == most
    assert find("", "v1", "namespaces").verbs == tuple(verb for verb in most if verb != "deletecollection")


def test_subresources_of_a_pod() -> None:
    pods = find("", "v1", "pods")
    assert [(one.name, one.kind, one.group, one.version, one.verbs) for one in pods.subresources] == [
        ("binding", "Binding", "", "v1", ("create",)),
        ("eviction", "Eviction", "policy", "v1", ("create",)),
        ("status", "Pod", "", "v1", ("get", "patch", "update")),
    ]
    assert pods.unserved == (
        *("attach", "ephemeralcontainers", "exec", "log", "portforward", "proxy"),
        "resize",
    )


def test_what_has_replicas_has_a_scale() -> None:
    scaled = [one.resource for one in ALL if one.subresource("scale") is not None]
    assert scaled == ["replicationcontrollers", "deployments", "replicasets", "statefulsets"]
    scale = find("apps", "v1", "deployments").subresource("scale")
    assert scale is not None
    assert (scale.kind, scale.group, scale.version) == ("Scale", "autoscaling", "v1")


def test_resources_of_a_version_go_by_name() -> None:
    assert [one.resource for one in ALL.resources("batch", "v1")] == ["cronjobs", "jobs"]
    assert ALL.resources("batch", "v2") == ()
