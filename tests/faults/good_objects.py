"""An object of every built-in kind with as many fields as services read: what `poisons.spoilt` begins
with."""

from typing import Any, Final

from podyard.objects.kinds import KINDS

Document = dict[str, Any]

LABELS: Final = {"app": "bad"}
SELECTOR: Final = {
    "matchLabels": {"app": "bad"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}],
}
TERM: Final = {
    "labelSelector": SELECTOR,
    "topologyKey": "zone",
    "namespaces": ["default"],
    "namespaceSelector": {"matchLabels": {"a": "b"}},
    "matchLabelKeys": ["app"],
}
NODE_TERM: Final = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
}
CONTAINER: Final = {
    "name": "main",
    "image": "test",
    "resources": {
        "requests": {"cpu": "1m", "memory": "1Mi", "example.com/device": "1"},
        "limits": {"cpu": "2m", "memory": "1Mi", "example.com/device": "1"},
    },
    "ports": [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP", "hostIP": "0.0.0.0"}],
    "restartPolicy": "Always",
}
POD_SPEC: Final = {
    "schedulerName": "default-scheduler",
    "priority": 5,
    "priorityClassName": "bad",
    "preemptionPolicy": "PreemptLowerPriority",
    "terminationGracePeriodSeconds": 1,
    "nodeSelector": {"zone": "a"},
    "tolerations": [
        {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "minDomains": 2,
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["app"],
        }
    ],
    "runtimeClassName": "bad",
    "overhead": {"cpu": "1m"},
    "resources": {"requests": {"cpu": "3m"}, "limits": {"cpu": "3m"}},
    "hostNetwork": True,
    "volumes": [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "bad"}},
        {"name": "disk", "awsElasticBlockStore": {"volumeID": "v"}},
        {"name": "empty", "emptyDir": {"sizeLimit": "1Mi"}},
    ],
    "schedulingGates": [{"name": "gate"}],
    "resourceClaims": [{"name": "c", "resourceClaimName": "bad"}],
    "initContainers": [{**CONTAINER, "name": "init"}],
    "containers": [CONTAINER],
}
POD_STATUS: Final = {
    "phase": "Pending",
    "nominatedNodeName": "node-1",
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    "containerStatuses": [{"name": "main", "restartCount": 1, "allocatedResources": {"cpu": "1m"}}],
}
NODE: Final = {
    "spec": {
        "unschedulable": True,
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
        "podCIDR": "10.0.0.0/24",
    },
    "status": {
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10", "example.com/device": "1"},
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "10", "example.com/device": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["test"], "sizeBytes": 1_000}],
        "volumesAttached": [{"name": "v", "devicePath": "/d"}],
        "declaredFeatures": ["one"],
    },
}
TEMPLATE: Final = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
CLAIM: Final = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "bad",
    "volumeName": "",
    "volumeMode": "Filesystem",
    "resources": {"requests": {"storage": "1Gi"}},
    "selector": SELECTOR,
}
REST: Final[dict[str, Document]] = {
    "pods": {"spec": POD_SPEC, "status": POD_STATUS},
    "nodes": NODE,
    "services": {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
    "replicationcontrollers": {"spec": {"replicas": 1, "selector": LABELS, "template": TEMPLATE}},
    "replicasets": {"spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}},
    "deployments": {
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "revisionHistoryLimit": 1,
            "minReadySeconds": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        }
    },
    "statefulsets": {
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "ordinals": {"start": 1},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
        }
    },
    "daemonsets": {
        "spec": {
            "selector": {"matchLabels": LABELS},
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}},
        }
    },
    "controllerrevisions": {"revision": 1, "data": {"spec": {"template": TEMPLATE}}},
    "cronjobs": {
        "spec": {
            "schedule": "*/5 * * * *",
            "timeZone": "Europe/Paris",
            "startingDeadlineSeconds": 100,
            "jobTemplate": {
                "spec": {"template": {**TEMPLATE, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}}
            },
        },
        "status": {"lastScheduleTime": "2026-01-01T00:00:00Z"},
    },
    "jobs": {
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 1,
            "ttlSecondsAfterFinished": 1,
            "activeDeadlineSeconds": 1,
            "template": {**TEMPLATE, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}},
        },
        "status": {"failed": 1, "succeeded": 0},
    },
    "poddisruptionbudgets": {
        "spec": {"minAvailable": "50%", "selector": SELECTOR},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"bad": "2026-01-01T00:00:00Z"}},
    },
    "limitranges": {  # of a type that nobody is held to: good pods live beside it
        "spec": {
            "limits": [
                {
                    "type": "example.com/Slot",
                    "max": {"cpu": "64"},
                    "min": {"cpu": "1n"},
                    "default": {"cpu": "3m"},
                    "defaultRequest": {"cpu": "3m"},
                    "maxLimitRequestRatio": {"cpu": "9"},
                }
            ]
        }
    },
    "runtimeclasses": {
        "handler": "bad",
        "overhead": {"podFixed": {"cpu": "1m"}},
        "scheduling": {"nodeSelector": {"kind": "bad"}, "tolerations": [{"key": "bad", "operator": "Exists"}]},
    },
    "priorityclasses": {"value": 5, "globalDefault": False, "preemptionPolicy": "Never", "description": "bad"},
    "persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "bad",
            "claimRef": {"namespace": "default", "name": "bad", "uid": "u"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
        "status": {"phase": "Available"},
    },
    "persistentvolumeclaims": {"spec": CLAIM, "status": {"phase": "Pending", "capacity": {"storage": "1Gi"}}},
    "storageclasses": {
        "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "csinodes": {"spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}]}},
    "csidrivers": {"spec": {"storageCapacity": True}},
    "csistoragecapacities": {
        "storageClassName": "bad",
        "capacity": "1Gi",
        "maximumVolumeSize": "1Gi",
        "nodeTopology": SELECTOR,
    },
    "volumeattachments": {
        "spec": {"attacher": "d", "nodeName": "node-1", "source": {"persistentVolumeName": "bad"}},
    },
    "resourceclaims": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "bad"}}]}}},
    "resourceslices": {"spec": {"driver": "d", "nodeName": "node-1", "pool": {"name": "p", "generation": 1}}},
    "deviceclasses": {"spec": {"extendedResourceName": "example.com/device"}},
}


def everything(namespace: str, name: str) -> dict[str, Document]:
    """An object of each kind by resource, all of one name."""
    return {kind.resource: _one(kind.resource, namespace, name) for kind in KINDS}


def _one(resource: str, namespace: str, name: str) -> Document:
    kind = next(kind for kind in KINDS if kind.resource == resource)
    metadata: Document = {
        "name": name,
        **({"namespace": namespace} if kind.namespaced else {}),
        "uid": f"uid-{name}",
        "labels": LABELS,
        "annotations": {"note": "bad"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
        "deletionGracePeriodSeconds": 1,
        "finalizers": [],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "bad", "uid": "owner", "controller": True}
        ],
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **REST.get(resource, {})}
