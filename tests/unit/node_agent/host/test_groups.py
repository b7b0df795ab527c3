"""Where cgroups are, what may name one, and the limits that are written."""

from pathlib import Path

import pytest

from podyard.node_agent.host import hierarchies, limits, store
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.records import Limits
from tests.unit.node_agent.host.make import NODE, Host


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(tmp_path, request.param)


def test_controllers_that_are_there_are_found(host: Host):
    assert host.hierarchy().controllers == (
        {"memory", "cpu", "cpuacct", "pids"} if host.version == 1 else {"memory", "cpu", "pids"}
    )
    assert host.hierarchy().missing() == ()


def test_a_controller_that_is_not_there_is_missed(tmp_path: Path):
    host = Host(tmp_path, 2)
    (host.root / "cgroup.controllers").write_text("cpu memory\n")
    assert host.hierarchy().missing() == ("pids",)


def test_no_cgroups_are_found_where_none_are_mounted(tmp_path: Path):
    with pytest.raises(HostError, match=f"no cgroups are mounted at {tmp_path}: mount cgroup2 there"):
        hierarchies.find(tmp_path)


@pytest.mark.parametrize("text", ["", "/", "a", "/a/b", "system.slice/user@0.service/", "/".join("a" * 16)])
def test_a_path_of_a_cgroup_loses_its_outer_slashes(text: str):
    assert hierarchies.checked(text) == text.strip("/")


@pytest.mark.parametrize("text", ["..", "a/../b", "a//b", "/.a", "a b", "a/\n", "é", "/".join("a" * 17), "a" * 256])
def test_what_is_no_path_of_a_cgroup_is_refused(text: str):
    with pytest.raises(HostError, match="is no path of a cgroup: expected names with slashes between"):
        hierarchies.checked(text)


@pytest.mark.parametrize("uid", ["", "..", ".", "a/b", "-a", "a\n", "a" * 129])
def test_a_uid_that_leads_elsewhere_names_no_pod(uid: str):
    with pytest.raises(HostError, match="is no uid of a pod"):
        store.checked_uid(uid)


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-a", "a-", "a.b", "a\n", "a" * 64])
def test_what_is_no_dns_label_names_no_container(name: str):
    with pytest.raises(HostError, match="is no name of a container"):
        store.checked_container(name)


def test_controllers_are_handed_on_down_to_a_cgroup(tmp_path: Path):
    host = Host(tmp_path, 2)
    for above in ("", NODE, f"{NODE}/podyard-pods"):
        (host.root / above / "cgroup.subtree_control").write_text("")
    host.hierarchy().make(f"{NODE}/podyard-pods/pod-u2")
    for above in ("", NODE, f"{NODE}/podyard-pods"):
        assert (host.root / above / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert (host.root / f"{NODE}/podyard-pods/pod-u2").is_dir()


def test_what_cannot_be_handed_on_is_said(tmp_path: Path):
    host = Host(tmp_path, 2)
    (host.root / NODE / "cgroup.subtree_control").unlink()
    with pytest.raises(HostError, match=f"there is no {host.root}/leak/cgroup.subtree_control; a cgroup with proc"):
        host.hierarchy().make(f"{NODE}/other")


def test_a_cgroup_of_version_1_is_made_in_each_hierarchy(tmp_path: Path):
    host = Host(tmp_path, 1)
    host.hierarchy().make("a/b")
    assert {path.parent.parent.name for path in host.root.glob("*/a/b")} == {"cpu", "cpuacct", "memory", "pids"}
    assert host.hierarchy().children("a") == {"b"}
    host.hierarchy().remove("a")
    assert list(host.root.glob("*/a")) == []


def test_processes_of_a_cgroup_are_those_below_it_too(host: Host):
    found = host.hierarchy().processes(NODE)
    assert len(found) == 2
    assert host.hierarchy().processes(f"{NODE}/podyard-pods/pod-u1/container-web") == found
    assert host.hierarchy().processes("nothing") == set()


# ---- limits ------------------------------------------------------------------------------------------------

GROUP = f"{NODE}/podyard-pods"
OF_VERSION = {
    1: ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cpu.shares", "cpu.cfs_period_us", "cpu.cfs_quota_us"],
    2: ["memory.max", "memory.swap.max", "cpu.weight", "cpu.max"],
}


def written(host: Host, of: Limits) -> dict[str, str]:
    """What stands in the files of limits afterwards."""
    names = [(name.partition(".")[0], name) for name in (*OF_VERSION[host.version], "pids.max")]
    paths = {name: host.file(controller, name, GROUP) for controller, name in names}
    for path in paths.values():
        if not path.exists():
            path.write_text("")
    limits.put(host.hierarchy(), GROUP, of)
    return {name: path.read_text().strip() for name, path in paths.items()}


def test_limits_are_written(host: Host):
    of = Limits(memory_bytes=64 << 20, cpu_request_millis=250, cpu_limit_millis=1500, processes=20)
    memory = str(64 << 20)
    assert written(host, of) == {
        1: {
            "memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory, "cpu.shares": "256",
            "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000", "pids.max": "20",
        },
        2: {
            "memory.max": memory, "memory.swap.max": "0", "cpu.weight": "35", "cpu.max": "150000 100000",
            "pids.max": "20",
        },
    }[host.version]  # fmt: skip


def test_no_limits_are_written_as_such(host: Host):
    assert written(host, Limits()) == {
        1: {
            "memory.limit_in_bytes": "-1", "memory.memsw.limit_in_bytes": "-1", "cpu.shares": "2",
            "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1", "pids.max": "max",
        },
        2: {
            "memory.max": "max", "memory.swap.max": "max", "cpu.weight": "1", "cpu.max": "max 100000",
            "pids.max": "max",
        },
    }[host.version]  # fmt: skip


@pytest.mark.parametrize(
    ("millis", "shares", "weight"),
    [(0, 2, 1), (2, 2, 1), (100, 102, 17), (1000, 1024, 100), (256_000, 262_144, 10_000), (10**6, 262_144, 10_000)],
)
def test_requests_of_cpu_are_weights_as_the_kubelet_and_runc_write_them(millis: int, shares: int, weight: int):
    assert (limits.shares(millis), limits.weight(millis)) == (shares, weight)


@pytest.mark.parametrize(("millis", "quota"), [(1, 1000), (10, 1000), (11, 1100), (2500, 250_000)])
def test_a_limit_of_cpu_is_a_quota_of_a_period(millis: int, quota: int):
    assert limits.quota_us(millis) == quota


@pytest.mark.parametrize(
    ("of", "what", "controller"),
    [
        (Limits(memory_bytes=1), "limit of memory", "memory"),
        (Limits(cpu_request_millis=1), "request or limit of CPU", "cpu"),
        (Limits(cpu_limit_millis=1), "request or limit of CPU", "cpu"),
        (Limits(processes=1), "limit of processes", "pids"),
    ],
)
def test_a_limit_that_no_controller_keeps_is_refused(tmp_path: Path, of: Limits, what: str, controller: str):
    bare = Hierarchy(2, tmp_path, frozenset())
    limits.put(bare, "", Limits())
    with pytest.raises(HostError) as caught:
        limits.put(bare, "", of)
    assert str(caught.value) == f"a {what} cannot be kept: the cgroups at {tmp_path} have no controller {controller}"
