"""The module that Kubernetes' programs are built in."""

from podyard.bench.programs import kubernetes

RELEASED = """module k8s.io/kubernetes

require (
\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""


def test_released_modules_stand_in_for_the_folders() -> None:
    lines = kubernetes.module(RELEASED).splitlines()
    assert [line for line in lines if line.startswith("replace")] == [
        "replace k8s.io/api => k8s.io/api v0.36.2",
        "replace k8s.io/kubectl => k8s.io/kubectl v0.36.2",
    ]
    assert "require go.etcd.io/etcd/server/v3 v3.6.8" in lines
