"""Fixtures: a cluster to look things up in, and admission at a fixed time with counted uids."""

import itertools
from random import Random

import pytest

from podyard.objects import admission, decoding
from podyard.objects.core import Pod
from tests.support.objects import pod, written

NOW = 1_700_000_000.0


class Cluster:
    """What admission sees: objects by (resource, namespace, name)."""

    def __init__(self):
        self.objects = {}

    def add(self, resource, document):
        meta = document["metadata"]
        self.objects[resource, meta.get("namespace", ""), meta["name"]] = document

    def get(self, resource, namespace, name):
        return self.objects.get((resource, namespace, name))

    def list(self, resource):
        return [item for (held, _, _), item in self.objects.items() if held == resource]


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def admit(cluster):
    """`admit(document, old=None)` at NOW, with uids uid-1, uid-2, ..."""
    numbers = itertools.count(1)
    random = Random(7)

    def run(document, old=None):
        return admission.admit(
            document, cluster, old=old, now=NOW, new_uid=lambda: f"uid-{next(numbers)}", random=random
        )

    return run


@pytest.fixture
def refused(admit):
    """`refused(document, old=None)`: the faults, as "field: detail"."""

    def run(document, old=None):
        with pytest.raises(admission.AdmissionError) as caught:
            admit(document, old)
        return [str(fault) for fault in caught.value.faults]

    return run


@pytest.fixture
def make_pod():
    """`make_pod(name=..., containers=..., **spec)`: a plain pod as a person writes it, who names no
    namespace."""

    def make(name="web", labels=None, containers=None, **more):
        spec = {"containers": containers or [{"name": "c", "image": "nginx:1"}], **more}
        document = written(pod(name, labels=labels or {"app": "web"}, **spec))
        if "namespace" not in more:
            del document["metadata"]["namespace"]
        return document

    return make


@pytest.fixture
def typed_pod(make_pod):
    """`typed_pod(status=..., **spec)`: a pod as its typed view."""

    def make(status=None, **spec):
        document = make_pod(**spec)
        if status is not None:
            document["status"] = status
        return decoding.convert(Pod, document)

    return make
