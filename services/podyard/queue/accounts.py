"""What is told of what the queue did, to those who look afterwards: records, counts, traces, log lines."""

from collections.abc import Sequence

import structlog

from podyard.bus import Outgoing
from podyard.proto import codec, streams, subjects
from podyard.proto.decisions import AttemptRecord, message_id
from podyard.proto.message import PodRef
from podyard.queue import attempt_spans, records
from podyard.queue.core.effects import AttemptEnded, Differed, Gated, Judged, PluginFailed, Rescued
from podyard.queue.instruments import Instruments
from podyard.shell.records import Records
from podyard.telemetry.tracing import Spans


class Accounts:
    """Of one term."""

    def __init__(
        self,
        stored: Records,
        instruments: Instruments,
        spans: Spans,
        log: structlog.stdlib.BoundLogger,
        epoch: int,
    ) -> None:
        self._records = stored
        self._instruments = instruments
        self._spans = spans
        self._log = log
        self._epoch = epoch

    def judged(self, judgements: Sequence[Judged]) -> None:
        """What events did, in one step of the core."""
        for judged in records.merged(judgements):
            self._instruments.judged(judged)
            attempt_spans.pods_moved(self._spans, judged)
            record = records.requeue_record(judged)
            subject = subjects.requeue(record.event_id)
            self._records.put(Outgoing(subject, codec.encode(record), trace=judged.incoming.trace))

    def ended(self, endings: Sequence[AttemptEnded]) -> None:
        """Attempts are over, one after the other in one step of the core."""
        traced = [one for one in endings if attempt_spans.attempt_ended(self._spans, one)]
        self._instruments.ended(endings, traced)
        for one in endings:
            if one.by_queue:
                self._record(records.ended_record(one))

    def gated(self, gated: Gated) -> None:
        """A pod is kept out."""
        attempt_spans.gated(self._spans, gated)
        self._record(records.gated_record(gated, self._epoch))

    def _record(self, record: AttemptRecord) -> None:
        subject = subjects.decisions(record.namespace, record.name, record.uid)
        self._records.put(Outgoing(subject, codec.encode(record), message_id=message_id(record)))

    def purge(self, pod: PodRef) -> None:
        """Records of the pod's attempts go."""
        self._records.purge(streams.DECISIONS.name, subjects.decisions(pod.namespace, pod.name, pod.uid))

    def rescued(self, rescued: Rescued) -> None:
        """A hint is wrong: told with all that is needed to see which."""
        self._instruments.rescued.inc()
        self._log.warning("a pod was scheduled right after the safety flush: a queueing hint is wrong", **rescued.story)

    def differed(self, differed: Differed) -> None:
        """Changes were missed."""
        self._log.warning("the queue had other pods than the cluster listed: changes were missed", pods=differed.pods)

    def plugin_failed(self, failed: PluginFailed) -> None:
        """A plugin is wrong."""
        self._instruments.plugin_faults.told(failed.plugin, failed.point, failed.detail)
