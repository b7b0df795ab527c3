"""Kubernetes objects: typed views, the rules of their fields, what admission makes of them.

Duty: everything that can be said of one object, or of an object and the cluster it enters, without I/O.
Objects are JSON documents (the stored truth) and typed, frozen views of them for
readers.
Never in here: await, a clock (callers pass `now`), logging, the bus, telemetry, choices that belong to a
scheduler plugin.

Modules, by topic:

- `meta`, `containers`, `affinity`, `volumes`  the parts of objects
- `pod`, `node`, `core`, `apps`, `batch`, `policy`, `storage`, `scheduling`, `resource`, `extensions`  the
  kinds, by API group
- `kinds`             the table of kinds, names of custom ones; `acting` those that something here acts on
- `api_types`         the types of Kubernetes' API: fields, keys of lists, patches, where kinds are served;
  `api_numbers` how they are written as protobuf, `api_words` what the API document says of them in words
- `decoding`          JSON to typed views, at one door
- `quantity`          exact amounts; `quantity_fields` where kinds have them, `amounts` those that are
  counted, `spoken_amounts` how people say them
- `selectors`         label selectors, node selectors; `taints` taints and tolerations
- `pod_requests`      what a pod takes from its node
- `host_ports`        when two pods ask for the same port of a node
- `claims`            which claims a pod's volumes stand for, and how claim and volume belong together
- `csi_migration`     in-tree volumes that a CSI driver serves today
- `priority`          a pod's priority, built-in priority classes
- `label_text`        label selectors as people write them
- `times`             RFC 3339, and ages as kubectl writes them
- `go_syntax`         numbers and durations as Go's flags and configuration files write them
- `documents`         walking and copying JSON documents
- `manifests`         files to documents; `yaml_reader` the YAML that kubectl reads
- `admission`         what the API server adds, fills in and refuses: `defaults`, `pod_defaults`, `type_check`
  (types), `bounds`, `kind_validation`, `workload_validation`, `pod_validation`, `resource_validation`,
  `affinity_validation`, `updates`, `secrets` by topic; `names` which names are allowed, `faults` the API
  server's words
- `cron`              schedules of CronJobs
- `limit_ranges`, `runtime_classes`  those kinds, and what admission makes of pods by them
- `service_addresses` which addresses and ports services get
- `structural`        schemas of custom kinds: what they know, fill in and refuse
- `quotas`            resource quotas; `quota_usage` what an object takes of one
- `errors`            what can be wrong
"""

from podyard.objects.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service
from podyard.objects.decoding import decode
from podyard.objects.errors import ObjectError
from podyard.objects.kinds import CustomObject, Kind, Object, kind_for, kind_of_event, kind_of_resource, resource_for
from podyard.objects.meta import ObjectMeta

__all__ = [
    "CustomObject",
    "Kind",
    "Namespace",
    "Node",
    "Object",
    "ObjectError",
    "ObjectMeta",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "Service",
    "decode",
    "kind_for",
    "kind_of_event",
    "kind_of_resource",
    "resource_for",
]
