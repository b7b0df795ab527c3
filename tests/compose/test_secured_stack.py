"""docker-compose.secure.yml for real: TLS, a key for everybody, three accounts, and the same stack on
them."""

import pytest

from tests.compose.stack import LASTING, Stack
from tests.compose.test_stack import POD, PROMISES

AUTHORITY = "PODYARD_NATS_TLS_CA_FILE"
CERTIFICATE = ("PODYARD_NATS_TLS_CERT_FILE", "PODYARD_NATS_TLS_KEY_FILE")


def test_up_brings_everything_up_and_the_administrators_leave(secured: Stack) -> None:
    assert secured.all_well(), secured.state()
    for service in ("nats-streams", "lab-nodes"):
        found = secured.container(service)
        assert (found.state, found.details["State"]["ExitCode"]) == ("exited", 0), service
    keys = {one.service: {mount["Source"] for mount in one.details["Mounts"]} for one in secured.containers()}
    held = {service for service, sources in keys.items() if any("identities/admin" in source for source in sources)}
    assert held == {"nats-streams"}
    assert not any("ca.key" in source for sources in keys.values() for source in sources)


def test_the_story_of_the_demo_is_told_by_a_person_with_a_key(secured: Stack) -> None:
    told = " ".join(secured.compose("run", "--rm", "demo").split())
    assert [promise for promise in PROMISES if promise not in told] == [], told


def test_outside_a_person_with_a_key_reads_and_writes(secured: Stack) -> None:
    secured.podyard("apply", "-f", "-", stdin=POD.replace("NAME", "with-a-key"))
    secured.until("the pod runs", lambda: secured.phase("with-a-key") == "Running")


@pytest.mark.parametrize("held", [(), (AUTHORITY,), (AUTHORITY, *CERTIFICATE)], ids=["nothing", "authority", "no nkey"])
def test_outside_nobody_is_let_in_without_all_of_it(secured: Stack, held: tuple[str, ...]) -> None:
    stranger = {name: path for name, path in secured.outside.items() if name in held}
    assert len(stranger) == len(held)
    refused = secured.try_podyard("get", "nodes", outside=stranger)
    assert (refused.code, refused.out) == (1, "")
    assert "does not let us in" in refused.err, refused.err


def test_nats_killed_comes_back_and_everybody_logs_in_again(secured: Stack) -> None:
    secured.crash_and_wait("nats")
    assert {one.service for one in secured.containers() if one.well} >= set(LASTING)
    secured.podyard("apply", "-f", "-", stdin=POD.replace("NAME", "after-nats"))
    secured.until("the pod runs", lambda: secured.phase("after-nats") == "Running")
