"""What `apply` says of the api's answers, and how it cuts files into requests."""

import pytest

from podyard.cli import files, objects_client
from podyard.cli.commands import apply
from podyard.cli.errors import CliError, InputError, listed
from podyard.objects.manifests import load
from podyard.proto.objects_api import FieldError, ObjectResult

TWO = """
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: staging}
spec: {containers: [{name: c}]}
"""


@pytest.fixture
def manifests():
    return load("two.yaml", TWO)


def test_a_fault_is_told_with_file_document_and_field_and_the_others_are_not(manifests):
    fault = FieldError(field="spec.containers[0].image", detail="Required value")
    results = [
        ObjectResult(outcome="refused", message="nothing was written: 1 other object of the request cannot be"),
        ObjectResult(outcome="refused", errors=(fault,)),
    ]
    with pytest.raises(InputError) as raised:
        apply._check(manifests, results)
    assert raised.value.message == "two.yaml: document 2 (line 7): spec.containers[0].image: Required value"


def test_a_refusal_without_a_fault_is_not_the_files_and_gives_its_message(manifests):
    with pytest.raises(CliError, match=r"document 1 .*: no room for it") as raised:
        apply._check(manifests, [ObjectResult(outcome="refused", message="no room for it")])
    assert raised.value.exit_code == 1


def test_good_results_pass(manifests):
    apply._check(manifests, [ObjectResult(outcome="created"), ObjectResult(outcome="unchanged")])


def test_objects_live_in_the_namespace_they_or_the_command_name(manifests):
    for manifest in manifests:
        files.settle_namespace(manifest, None)
    assert [manifest.namespace for manifest in manifests] == ["default", "staging"]
    with pytest.raises(InputError, match=r'metadata\.namespace: is "staging", but --namespace says "other"'):
        files.settle_namespace(manifests[1], "other")


def test_requests_hold_256_objects_and_three_mebibytes():
    small = [b"x"] * 600
    assert [(start, len(piece)) for start, piece in objects_client.pieces(small)] == [(0, 256), (256, 256), (512, 88)]
    large = [b"x" * 1024 * 1024] * 7
    assert [(start, len(piece)) for start, piece in objects_client.pieces(large)] == [(0, 3), (3, 3), (6, 1)]
    assert list(objects_client.pieces([])) == []


def test_a_long_list_of_faults_is_cut():
    text = listed([f"fault {number}" for number in range(50)])
    assert text.count("fault") == 20
    assert text.endswith("... and 30 more")
