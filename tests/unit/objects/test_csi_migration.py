"""In-tree volumes under their CSI drivers. Source of the cases: csi-translation-lib/plugins/*_test.go, read
as rules."""

from typing import Any

import msgspec
import pytest

from podyard.objects import csi_migration, decoding
from podyard.objects.core import PersistentVolume
from podyard.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, TranslationError
from podyard.objects.volumes import Volume

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def volume(
    source: dict[str, Any], labels: dict[str, str] | None = None, *terms: dict[str, list[str]]
) -> PersistentVolume:
    """Each term: values by label."""
    spec: dict[str, Any] = dict(source)
    if terms:
        listed = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
            for term in terms
        ]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": listed}}
    document = {"metadata": {"name": "v", "labels": labels or {}}, "spec": spec}
    return decoding.decode_as(PersistentVolume, msgspec.json.encode(document))


def affinity(found: PersistentVolume) -> list[dict[str, list[str]]] | None:
    plugin = csi_migration.plugin_of_volume(found)
    assert plugin is not None
    selector = csi_migration.translated_affinity(plugin, found)
    if selector is None:
        return None
    return [{item.key: list(item.values) for item in term.match_expressions} for term in selector.node_selector_terms]


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.mark.parametrize(
    ("labels", "terms", "wanted"),
    [
        ({}, [], None),
        ({ZONE: "a"}, [], [{EBS_ZONE: ["a"]}]),
        ({BETA_ZONE: "b__a"}, [], [{EBS_ZONE: ["a", "b"]}]),
        ({ZONE: "a"}, [{ZONE: ["b"]}], [{EBS_ZONE: ["b"]}]),
        ({ZONE: "a"}, [{"disk": ["x"]}], [{"disk": ["x"], EBS_ZONE: ["a"]}]),
        ({ZONE: "a"}, [{BETA_ZONE: ["b"]}], [{EBS_ZONE: ["b"]}]),
        ({}, [{BETA_ZONE: ["b"], BETA_REGION: ["r"]}], [{EBS_ZONE: ["b"], REGION: ["r"]}]),
        ({}, [{ZONE: ["b"], BETA_REGION: ["r"]}], [{EBS_ZONE: ["b"], BETA_REGION: ["r"]}]),
        ({}, [{"disk": ["x"]}], [{"disk": ["x"]}]),
    ],
)
def test_zones_become_the_drivers_own(labels: dict[str, str], terms: list[Any], wanted: Any) -> None:
    assert affinity(volume(EBS, labels, *terms)) == wanted


def test_drivers_without_zones_leave_the_affinity_as_it_is() -> None:
    disk = volume({"azureDisk": {"diskName": "d", "diskURI": "/u"}}, {ZONE: "a"}, {ZONE: ["a"]})
    assert affinity(disk) == [{ZONE: ["a"]}]


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        (EBS, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-2"}}, {}, "ebs.csi.aws.com", "vol-2"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-3"}}, {}, "ebs.csi.aws.com", "vol-3"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-a-1"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/us-a-1/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-a-1__us-a-2"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/us-a/disks/d",
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "/u"}}, {}, "disk.csi.azure.com", "/u"),
        ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
    ],
)
def test_handles(source: dict[str, Any], labels: dict[str, str], driver: str, handle: str) -> None:
    found = volume(source, labels)
    plugin = csi_migration.plugin_of_volume(found)
    assert plugin is not None
    assert plugin.migrated
    assert (plugin.driver, csi_migration.volume_handle(plugin, found)) == (driver, handle)


@pytest.mark.parametrize(
    ("source", "labels", "why"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/other"}}, {}, "Invalid format for AWS volume"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a__b"}, "zone in unexpected format"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "us-a-1__us-b-1"}, "multiple or no regions"),
    ],
)
def test_what_cannot_be_translated(source: dict[str, Any], labels: dict[str, str], why: str) -> None:
    found = volume(source, labels)
    plugin = csi_migration.plugin_of_volume(found)
    assert plugin is not None
    with pytest.raises(TranslationError, match=why):
        csi_migration.volume_handle(plugin, found)


def test_inline_volumes_know_no_zone() -> None:
    inline = decoding.decode_as(Volume, b'{"name": "v", "gcePersistentDisk": {"pdName": "d"}}')
    plugin = csi_migration.plugin_of_inline(inline)
    assert plugin is not None
    assert csi_migration.inline_handle(plugin, inline) == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
    assert csi_migration.plugin_of_inline(decoding.decode_as(Volume, b'{"name": "v", "emptyDir": {}}')) is None


@pytest.mark.parametrize("source", [{"azureFile": {"shareName": "s"}}, {"vsphereVolume": {"volumePath": "p"}}])
def test_volumes_that_no_driver_is_counted_for(source: dict[str, Any]) -> None:
    plugin = csi_migration.plugin_of_volume(volume(source))
    assert plugin is not None
    assert not plugin.migrated
