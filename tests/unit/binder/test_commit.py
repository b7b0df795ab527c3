"""The order of a batch, what it holds, when it is sent (docs/rules.md, fence-comes-last-in-the-batch)."""

from podyard.binder.core import effects
from podyard.proto import codec, subjects
from podyard.proto.placement import Binding, CommitRecord, Fence
from tests.unit.binder.stage import Stage, binding_subject, uid_of


def test_a_decision_becomes_binding_record_and_fence_in_this_order():
    stage = Stage()
    stage.node()
    stage.pod("a")
    binder = stage.serving()
    before = stage.stream.messages[subjects.FENCE].sequence
    assert binder.bind(stage.decide("a")) == ["bound"]
    writes = binder.sends[-1].writes
    assert [write.subject for write in writes] == [binding_subject("a"), subjects.commit(1), subjects.FENCE]
    assert [write.expect for write in writes] == [0, 0, before]
    assert writes[1].expires
    fence = codec.decode(Fence, writes[-1].payload)
    assert (fence.n, fence.batch, fence.holder) == (1, binder.sends[-1].batch_id, "binder-a")


def test_an_answer_says_where_in_the_stream_its_binding_is_durable():
    stage = Stage()
    stage.node()
    stage.pod("a")
    binder = stage.serving()
    decision = stage.decide("a")
    (answer,) = binder.answers(binder.ask(decision))
    assert answer.committed_at == stage.stream.messages[subjects.FENCE].sequence
    (other,) = binder.answers(binder.ask(decision, session="a new session of the same scheduler"))
    assert other.result == "bound"
    assert stage.stream.messages[binding_subject("a")].sequence < other.committed_at <= stage.stream.last


def test_a_binding_carries_all_that_usage_and_explain_need():
    stage = Stage()
    stage.node()
    stage.pod("a", cpu="250m", priority=7, host_port=80)
    binder = stage.serving()
    decision = stage.decide("a")
    binder.bind(decision)
    binding = stage.stream.placement("a")
    assert isinstance(binding, Binding)
    assert (binding.node, binding.attempt, binding.decided_at, binding.priority) == ("n1", "1-a", decision.position, 7)
    assert binding.usage.requests == {"cpu": 250}
    assert [port.port for port in binding.usage.ports] == [80]
    assert binding.decision == decision.record
    assert binding.trace == "trace-a/bind"
    record = stage.stream.commits[-1]
    assert record.bindings[0].usage == binding.usage
    assert record.position == decision.position


def test_decisions_wait_ten_milliseconds_for_mates():
    stage = Stage()
    stage.node()
    for name in "ab":
        stage.pod(name)
    binder = stage.serving()
    first = binder.ask(stage.decide("a"), wait=False)
    assert first not in binder.replies
    assert binder.core.wake_at is not None
    assert abs(binder.core.wake_at - stage.now - 0.010) < 1e-6
    stage.pass_time(0.005)
    second = binder.ask(stage.decide("b"), wait=False)
    assert first not in binder.replies
    stage.pass_time(0.006)
    assert first in binder.replies
    assert second in binder.replies
    assert len(stage.stream.commits) == 1


def test_where_few_come_a_decision_goes_at_once():
    stage = Stage()
    stage.node(cpu="1000", pods="1000")
    names = [f"p{number}" for number in range(7)]
    for name in names:
        stage.pod(name)
    binder = stage.serving()
    binder.ask(stage.decide(names[0]), wait=True)
    assert binder.ask(stage.decide(names[1]), wait=False) in binder.replies
    stage.pass_time(0)  # its view shows what it wrote
    several = [stage.decide(name) for name in names[2:6]]
    assert binder.ask(*several, wait=False) in binder.replies
    stage.pass_time(0)
    last = binder.ask(stage.decide(names[6]), wait=False)
    assert last not in binder.replies, "four came at once: more may come"
    stage.pass_time(0.011)
    assert last in binder.replies
    assert [len(record.bindings) for record in stage.stream.commits] == [1, 1, 4, 1]


def test_256_decisions_go_at_once_and_the_rest_in_the_next_batch():
    stage = Stage()
    stage.node(cpu="1000", pods="1000")
    for number in range(300):
        stage.pod(f"p{number}")
    binder = stage.serving()
    decisions = [stage.decide(f"p{number}") for number in range(300)]
    binder.ask(*decisions[:256], wait=False)
    assert [len(record.bindings) for record in stage.stream.commits] == [256]
    binder.ask(*decisions[256:], wait=True)
    assert [len(record.bindings) for record in stage.stream.commits] == [256, 44]


def test_every_send_has_a_new_batch_id():
    stage = Stage()
    stage.node()
    for name in "abc":
        stage.pod(name)
    binder = stage.serving()
    binder.faults.extend(["lost", "lost ack", "no number"])
    for name in "abc":
        binder.bind(stage.decide(name))
    ids = [send.batch_id for send in binder.sends]
    assert len(ids) > 6
    assert len(set(ids)) == len(ids)


def test_one_uid_once_in_a_batch():
    """The same subject twice would fail the whole batch (10164)."""
    stage = Stage()
    stage.node()
    stage.pod("a")
    binder = stage.serving()
    ticket = binder.ask(stage.decide("a", attempt="1-1"), stage.decide("a", attempt="1-2"))
    stage.pass_time(0.02)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "alreadyBound"]
    assert not [send for send in binder.sends if len({w.subject for w in send.writes}) < len(send.writes)]
    assert [len(record.bindings) for record in stage.stream.commits] == [1]


def test_n_grows_by_one_a_commit():
    stage = Stage()
    stage.node()
    for name in "abc":
        stage.pod(name)
    binder = stage.serving()
    for name in "abc":
        binder.bind(stage.decide(name))
    assert [record.n for record in stage.stream.commits] == [1, 2, 3]
    assert all(
        isinstance(record, CommitRecord) and record.epoch == binder.core.keeper.epoch for record in stage.stream.commits
    )


def test_requests_above_the_limit_are_refused_not_kept(monkeypatch):
    from podyard.binder.core import binder as module

    monkeypatch.setattr(module, "MAX_UNJUDGED", 1)
    stage = Stage()
    stage.node()
    for name in "ab":
        stage.pod(name)
    binder = stage.serving()
    binder.ask(stage.decide("a"), wait=False)
    ticket = binder.ask(stage.decide("b"), wait=False)
    assert "to be judged already" in binder.replies[ticket].refused


def test_another_digest_is_refused_with_the_difference():
    stage = Stage()
    stage.node()
    stage.pod("a")
    binder = stage.serving()
    ticket = binder.ask(stage.decide("a"), digest={"default-scheduler": "other"})
    assert "digest other" in binder.replies[ticket].refused
    assert stage.stream.commits == []


def test_the_report_of_a_commit_names_what_was_bound():
    stage = Stage()
    stage.node()
    stage.pod("a")
    binder = stage.serving()
    binder.bind(stage.decide("a"))
    (committed,) = binder.of(effects.Committed)
    assert [bound.uid for bound in committed.bound] == [uid_of("a")]
    (settled,) = binder.of(effects.Settled)
    assert [one.answer.result for one in settled.outcomes] == ["bound"]
