"""Every identity against everything that any identity may do: what is not in its row of the table below is
refused.

The table is written here by hand, from docs/trust.md and the services' package docstrings: what `identities`
makes of them is what is tested.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from nats.aio.client import Client

from podyard.bus import Bus, BusError, Conflict, Outgoing, connect
from podyard.cli import mending
from podyard.cli.errors import CliError, InputError
from podyard.cli.security import directory, identities
from podyard.proto import streams, subjects
from tests.contract.security.visitors import AGENTS, Site, site, tls
from tests.support.holding import held
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLACEMENT: Final = {"placement.bindings.default.web.u1", "placement.commits.1", "placement.fence"}
PODS: Final = {"cluster.pods.default.web"}
VOLUMES: Final = {"cluster.persistentvolumes._.pv", "cluster.persistentvolumeclaims.default.claim"}
BUDGETS: Final = {"cluster.poddisruptionbudgets.default.budget"}
OTHERS: Final = {
    "cluster.nodes._.node-1",
    "cluster.deployments.default.web",
    "cluster.things%2Ev1%2Eexample%2Eorg.default.x",
}
OBJECTS: Final = PODS | VOLUMES | BUDGETS | OTHERS
CENSUS: Final = {"cluster.census"}
LIVES: Final = {"cluster.nodelife.node-1"}
USAGES: Final = {"cluster.quotausage.default.q.u1"}
NOMINATIONS: Final = {"cluster.nominations.default.web.u1"}
REFUSALS: Final = {"cluster.podscheduled.default.web.u1"}
NODE_1: Final = {
    "cluster.podstatus.node-1.default.web.u1",
    "cluster.nodestatus.node-1",
    "heartbeat.node-1",
    "usage.node-1",
}
NODE_2: Final = {
    "cluster.podstatus.node-2.default.web.u1",
    "cluster.nodestatus.node-2",
    "heartbeat.node-2",
    "usage.node-2",
}
STATUSES: Final = {one for one in NODE_1 | NODE_2 if one.startswith("cluster.")}
ASKING: Final = {"svc.objects.apply", "svc.objects.delete", "svc.objects.evict"}
OPEN: Final = ASKING | {"svc.queue.list", "svc.queue.would", "svc.scheduler.would"}
SCHEDULING: Final = {
    "svc.queue.pop",
    "svc.queue.done",
    "svc.queue.heartbeat",
    "svc.queue.activate",
    "svc.queue.preempting",
}
BIND: Final = {"svc.binder.bind"}
PLAYED: Final = {"events.Node.Add", "signals.node-1"}
REVEAL: Final = {"svc.objects.reveal"}
PREVIEW: Final = {"svc.agents.node-1.preview"}
REGISTERED: Final = {"svc.objects.apply.node-1", "svc.objects.apply.node-2"}
DECISIONS: Final = {"decisions.default.web.u1"}
REQUEUES: Final = {"requeues.e1"}
MOVES: Final = {"moves.default.Deployment.web"}
NEWS: Final = {"k8sevents.default.Pod.web.1", "k8sevents._.Node.node-1.1"}
"""Events that the agent of node-1 may send."""
WORDS: Final = NEWS | {"k8sevents._.Node.node-2.1", "k8sevents.default.replicasets.web.1"}
HARMFUL: Final = {
    *(f"$JS.API.STREAM.{verb}.CLUSTER" for verb in ("UPDATE", "DELETE", "PURGE", "MSG.DELETE", "SNAPSHOT", "RESTORE")),
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.STREAM.PURGE.LEASES",
    *(f"$JS.API.CONSUMER.{verb}.CLUSTER.mirror" for verb in ("CREATE", "DELETE", "RESET")),
    "$JS.API.META.LEADER.STEPDOWN",
    "$JS.API.STREAM.LEADER.STEPDOWN.CLUSTER",
    *(f"JS.read.API.STREAM.{verb}.CLUSTER" for verb in ("UPDATE", "DELETE", "PURGE")),
    "JS.core.API.CONSUMER.RESET.CLUSTER.mirror",
    "JS.core.API.CONSUMER.CREATE.CLUSTER.x",
    "$JS.FC.CLUSTER.mirror.x",
    "$JS.ACK.CLUSTER.mirror.1.1.1.1.1",
    "mirror.CLUSTER",
    "$SYS.REQ.SERVER.PING",
    "_R_.x",
    "anything.else",
}
PURGE_DECISIONS: Final = {"$JS.API.STREAM.PURGE.DECISIONS"}
LEADERS: Final = ("queue", "binder", "descheduler", "workloads", "node_agent")
SERVICES: Final = (*LEADERS, "api", "kube_api", "scheduler", "cli", "bridge")


def reading(*names: str, api: str = "$JS.API") -> set[str]:
    return {
        f"{api}.{verb}"
        for name in names
        for verb in (
            f"STREAM.INFO.{name}",
            f"CONSUMER.CREATE.{name}.c",
            f"CONSUMER.DELETE.{name}.c",
            f"DIRECT.GET.{name}.x",
        )
    }


def leading(name: str) -> set[str]:
    return {f"leases.{name}"}


def dead(name: str) -> set[str]:
    return {f"dead.{name}"}


MIRRORED: Final = ("CLUSTER", "DECISIONS", "REQUEUES", "MOVES", "K8SEVENTS", "DEAD")
VISITING: Final = OPEN | PLAYED | reading(*MIRRORED, api="JS.read.API")
AGENT: Final = reading("CLUSTER", api="JS.read.API") | dead("node_agent")
RACK1: Final = next(identity for identity in identities.all_identities(AGENTS) if identity.name == "agent-rack1")
RACK1_LEASE: Final = next(subject for subject in RACK1.publishes if subject.startswith("leases."))

MAY: Final[dict[str, set[str]]] = {
    "api": OBJECTS | USAGES | reading("CLUSTER") | WORDS | dead("api"),
    "kube_api": ASKING
    | REVEAL
    | BIND
    | REFUSALS
    | reading("CLUSTER", "DECISIONS", "K8SEVENTS")
    | WORDS
    | dead("kube_api"),
    "queue": NOMINATIONS | DECISIONS | REQUEUES | PURGE_DECISIONS | reading("CLUSTER", "DECISIONS") | leading("queue")
    | WORDS | dead("queue"),
    "scheduler": SCHEDULING | BIND | DECISIONS | PODS | reading("CLUSTER") | WORDS | dead("scheduler"),
    "binder": PLACEMENT | VOLUMES | reading("CLUSTER") | leading("binder") | WORDS | dead("binder"),
    "descheduler": {"svc.objects.evict"} | MOVES | reading("CLUSTER", "MOVES") | leading("descheduler") | WORDS
    | dead("descheduler"),
    "workloads": OBJECTS | NOMINATIONS | STATUSES | LIVES | USAGES | CENSUS | reading("CLUSTER")
    | leading("workloads") | WORDS | dead("workloads"),
    "person": VISITING | PREVIEW | REVEAL | dead("cli"),
    "bridge": VISITING | dead("bridge"),
    "node_agent": NODE_1 | NODE_2 | leading("node_agent") | AGENT | WORDS,
    "agent-rack1": NODE_1 | {RACK1_LEASE, "svc.objects.apply.node-1"} | AGENT | NEWS,
}  # fmt: skip
INBOXES: Final = {f"_INBOX.{name}.x" for name in (*SERVICES, "agent-rack1", "admin", "mirrors")}
OWN_INBOX: Final = {"person": "_INBOX.cli.x"}
PROBES: Final = sorted(
    set().union(*MAY.values())
    | REGISTERED
    | HARMFUL
    | INBOXES
    | reading("LEASES")
    | reading(*MIRRORED)
    | leading("api")
)

ASKED: Final = {"svc.agents.node-1.preview", "svc.agents.node-2.preview"}
LISTENING: Final[dict[str, set[str]]] = {
    "api": {"svc.objects.apply", "svc.objects.apply.*", "svc.objects.reveal", "$SRV.PING"},
    "kube_api": {"usage.*", "$SRV.PING"},
    "queue": {"svc.queue.pop", "svc.queue.*", "events.>", "leases.queue", "$SRV.PING"},
    "scheduler": {"svc.scheduler.would", "$SRV.PING"},
    "binder": {"svc.binder.bind", "leases.binder", "$SRV.PING"},
    "descheduler": {"usage.*", "$SRV.PING"},
    "workloads": {"heartbeat.*", "heartbeat.node-1", "$SRV.PING"},
    "person": {"events.>"},
    "bridge": {"events.>"},
    "node_agent": {"signals.>", "heartbeat.*", "heartbeat.node-1", "$SRV.PING", *ASKED, "svc.agents.*.preview"},
    "agent-rack1": {"signals.>", "heartbeat.node-1", "$SRV.PING", "svc.agents.node-1.preview"},
}
EARS: Final = sorted(
    set().union(*LISTENING.values(), INBOXES)
    | {">", "cluster.>", "placement.>", "svc.>", "_INBOX.>", "mirror.>", "$JS.>", "$JS.API.>", "JS.>", "$SYS.>", "_R_.>",
       "leases.>", "dead.>"}
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with held(site(tmp_path_factory.mktemp("site"))) as found:
        yield found


async def test_the_table_has_every_identity():
    powerful = {identities.ADMIN, identities.MIRRORS, identities.OPERATOR}
    assert set(MAY) == set(LISTENING) == {known.name for known in identities.all_identities(AGENTS)} - powerful


async def test_the_binders_identity_mends_what_cannot_be_read_and_a_person_does_not(here: Site):
    subject = subjects.binding("default", "lost", "u")

    def connected(name: str) -> AbstractAsyncContextManager[Bus]:
        return connect(directory.bus_settings(here.security, here.identity(name), (here.server.url,)))

    async with connected("binder") as binder, connected("person") as person:
        await binder.publish(Outgoing(subject, b"7", expect=0))
        with pytest.raises((CliError, BusError)):
            await mending.mend(person, subject, node="", gone=True, agreed=True)
        assert await mending.mend(binder, subject, node="", gone=True, agreed=True) == 0
        with pytest.raises(InputError, match="nothing is stored there that cannot be read"):
            await mending.mend(binder, subject, node="", gone=True, agreed=True)


@pytest.mark.parametrize("name", MAY)
async def test_it_publishes_what_is_its_own_and_nothing_else(here: Site, name: str):
    async with here.visit(name) as visitor:
        refused = await visitor.publish_all(PROBES)
    allowed = MAY[name] | {OWN_INBOX.get(name, f"_INBOX.{name}.x")}
    assert set(PROBES) - refused == allowed


@pytest.mark.parametrize("name", LISTENING)
async def test_it_listens_to_what_is_its_own_and_nothing_else(here: Site, name: str):
    async with here.visit(name) as visitor:
        refused = await visitor.subscribe_all(EARS)
    assert set(EARS) - refused == LISTENING[name] | {OWN_INBOX.get(name, f"_INBOX.{name}.x")}


async def test_what_is_stored_was_written_by_whom_it_belongs_to(here: Site):
    known = [stream for stream in streams.ALL_STREAMS if stream.name != streams.LEASES.name]
    written = [subject for subject in PROBES if not subject.startswith(("$", "_", "JS.", "svc."))]
    for name in MAY:
        async with here.visit(name) as visitor:
            await visitor.publish_all(written)
    seen = 0
    for subject in written:
        stream = next((one.name for one in known if one.subjects[0].split(".")[0] == subject.split(".")[0]), "CLUSTER")
        found = await here.admin.get(stream, subject)
        if found is not None and found.payload:
            seen += 1
            assert subject in MAY[found.payload.decode()]
    assert seen >= len(OBJECTS | PLACEMENT | NOMINATIONS | DECISIONS | REQUEUES) + 4  # and the statuses of two nodes


async def test_what_an_agent_in_the_edge_sends_as_heartbeat_reaches_workloads_and_other_agents(here: Site):
    heard: list[str] = []
    overheard: list[str] = []

    def connected(name: str) -> AbstractAsyncContextManager[Bus]:
        return connect(directory.bus_settings(here.security, here.identity(name), (here.server.url,)))

    async with connected("workloads") as workloads, connected("agent-rack1") as agent, connected("node_agent") as other:
        await other.subscribe(subjects.heartbeat("node-1"), lambda subject, payload, trace: overheard.append(subject))
        await workloads.subscribe(subjects.ALL_HEARTBEATS, lambda subject, payload, trace: heard.append(subject))
        agent.send(subjects.heartbeat("node-2"), b"{}")
        agent.send(subjects.heartbeat("node-1"), b"{}")
        await eventually("its heartbeat", lambda: heard and overheard)
    assert heard == overheard == ["heartbeat.node-1"]


async def test_nobody_comes_in_without_key_or_certificate(here: Site, tmp_path: Path):
    given = directory.environment(here.security, here.identity("binder"))
    directory.create(tmp_path / "other", identities.all_identities())
    foreign = directory.environment(tmp_path / "other", here.identity("binder"))
    unknown = ssl.create_default_context(cafile=given["PODYARD_NATS_TLS_CA_FILE"])
    attempts = {
        "no key": ("", tls(given)),
        "a key of another installation": (foreign["PODYARD_NATS_NKEY_SEED_FILE"], tls(given)),
        "no certificate": (given["PODYARD_NATS_NKEY_SEED_FILE"], unknown),
    }
    for what, (seed, context) in attempts.items():
        assert not await _enters(here, seed, context), what
    assert await _enters(here, given["PODYARD_NATS_NKEY_SEED_FILE"], tls(given))


async def _enters(here: Site, seed: str, context: ssl.SSLContext) -> bool:
    async def ignore(_error: Exception) -> None: ...

    client = Client()
    try:
        await client.connect(
            here.server.url,
            nkeys_seed=seed or None,
            tls=context,
            allow_reconnect=False,
            error_cb=ignore,
            connect_timeout=2,
        )
    except Exception:  # whatever way the door is shut in
        return False
    else:
        return client.is_connected
    finally:
        await client.close()


async def test_a_version_conflict_reaches_whom_it_concerns_in_the_edge(here: Site):
    settings = directory.bus_settings(here.security, here.identity("agent-rack1"), (here.server.url,))
    async with connect(settings) as bus:
        ack = await bus.publish(Outgoing("cluster.podstatus.node-1.default.other.u2", b"{}", expect=0))
        with pytest.raises(Conflict) as caught:
            await bus.publish(Outgoing("cluster.podstatus.node-1.default.other.u2", b"{}", expect=0))
        assert caught.value.last_sequence == ack.sequence
