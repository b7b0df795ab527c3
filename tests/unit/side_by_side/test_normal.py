"""What two runs of a command have in common is left, what chance and the clock decide is not."""

import pytest

from tests.kube.side_by_side.normal import lines

TABLE = """NAME                   READY   STATUS    RESTARTS        AGE
web-5d4f8c7b9c-x2x7z   1/1     Running   0               5s
web-5d4f8c7b9c-7qhtb   1/1     Running   1 (3m ago)      2m10s
"""
LATER = """NAME                 READY   STATUS    RESTARTS      AGE
web-77c6f4d4-zb2lp   1/1     Running   0             49s
web-77c6f4d4-9xk8m   1/1     Running   1 (12s ago)   3h
"""
EVENTS = """  Type    Reason  Age   From  Message
  Normal  Made    3s    me    x
"""
EVENTS_LATER = """  Type    Reason  Age               From  Message
  Normal  Made    9m (x2 over 10m)  me    x
"""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TABLE, LATER),
        ("uid: 2a0fd4ea-6ea1-4f5c-8f5c-0b5c1f1e2d3a", "uid: 00000000-6ea1-4f5c-8f5c-0b5c1f1e2d3a"),
        ("creationTimestamp: 2026-11-27T16:53:14Z", "creationTimestamp: 2027-01-01T00:00:00Z"),
        ("renewTime: 2026-11-27T16:53:14.123456Z", "renewTime: 2027-01-01T00:00:00.000000Z"),
        ("CreationTimestamp:  Fri, 27 Nov 2026 16:53:14 +0000", "CreationTimestamp:  Sat, 28 Nov 2026 00:00:00 +0000"),
        ('  resourceVersion: "272"', '  resourceVersion: "100000"'),
        ('{"metadata":{"resourceVersion":"272"}}', '{"metadata":{"resourceVersion":"3"}}'),
        ('Invalid value: "{\\"resourceVersion\\":\\"272\\"}"', 'Invalid value: "{\\"resourceVersion\\":\\"3\\"}"'),
        ("  Resource Version:  811", "  Resource Version:  9"),
        ('"metadata":{"continue":"eyJ2IjoibWV0YQ"}', '"metadata":{"continue":"eyJ2IjoibWV0YQx1=="}'),
        ("Created on:  2026-11-27 17:55:05 +0000 UTC", "Created on:  2027-01-01 00:00:00 +0000 UTC"),
        ("pod-template-hash=5d4f8c7b9c", "pod-template-hash=77c6f4d4"),
        ("pod/web-5d4f8c7b9c-x2x7z evicted", "pod/web-77c6f4d4-9xk8m evicted"),
        ("Scaled up replica set web-5d4f8c7b9c from 0 to 2", "Scaled up replica set web-77c6f4d4 from 0 to 2"),
        ("event/web.18a4c3d2e1f00a1b", "event/web.0000c3d2e1f00a1b"),
        ("Server https://127.0.0.1:6443 refused", "Server https://127.0.0.1:31002 refused"),
        ("--- /tmp/LIVE-123/v1.ConfigMap.x\t2026-11-27 16:53:14.5 +0000", "--- /tmp/LIVE-9/v1.ConfigMap.x\t2027-01-01 00:00:00.1 +0000"),
        (EVENTS, EVENTS_LATER),
        ("E1127 16:57:26.123456   12345 memcache.go:265] no", "E0101 00:00:00.000000       1 memcache.go:301] no"),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run_is_replaced(one: str, other: str) -> None:
    assert lines(one) == lines(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NAME  READY  AGE\nweb  1/1  5s", "NAME  READY  AGE\nweb  0/1  5s"),
        ("NAME  CPU   AGE\nweb  250m  5s", "NAME  CPU   AGE\nweb  300m  5s"),
        ("cpu  100m (1%)", "cpu  200m (2%)"),
        ("spec:\n  replicas: 2", "spec:\nreplicas: 2"),
        ("generation: 2", "generation: 3"),
        ("pod/web-5d4f8c7b9c-x2x7z evicted", "pod/api-5d4f8c7b9c-x2x7z evicted"),
        ("node-1", "node-2"),
        ("progressDeadlineSeconds: 600", "progressDeadlineSeconds: 60"),
        ("10s", "20s"),
    ],
)
def test_what_a_command_says_is_not(one: str, other: str) -> None:
    assert lines(one) != lines(other)


def test_a_row_with_an_empty_cell_hides_no_age() -> None:
    assert lines("NAMESPACE  LAST SEEN  TYPE  REASON\nx  3s  Normal") == lines(
        "NAMESPACE  LAST SEEN  TYPE  REASON\nx  8s  Normal"
    )


def test_a_step_masks_what_differs_in_it() -> None:
    assert lines("bound to node-1", mask=[r"node-\d"]) == ["bound to <masked>"]
