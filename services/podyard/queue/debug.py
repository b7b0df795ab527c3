"""What the queue shows on `/debug`: its pools while it leads, its view always."""

from collections.abc import Callable, Collection

from podyard.cluster.comparing import Contents, Held, Waiting
from podyard.cluster.dumping import NodesDump, of_view
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from podyard.queue.core import listing
from podyard.queue.core.changes import is_pending
from podyard.queue.core.queue import Queue
from podyard.shell.informer import Followed


class Shown:
    """Of one reading, and of the terms on it."""

    def __init__(
        self,
        view: ClusterView,
        followed: Followed,
        profiles: Collection[str],
        leads: Callable[[], Queue | None],
        instance: str,
    ) -> None:
        """
        :param profiles: names of those that are scheduled here
        :param leads: the core of the term that is on; None: another one leads
        """
        self.view = view
        self.followed = followed
        self._profiles = frozenset(profiles)
        self._leads = leads
        self._instance = instance

    def queue(self, most: int) -> QueueListReply | None:
        """What waits where, as `podyard queue` shows it."""
        core = self._leads()
        if core is None:
            return None
        request = QueueListRequest(limit=most)
        return listing.reply(core.leader, request, position=self.view.position, instance=self._instance)

    def nodes(self, most: int, most_pods: int) -> NodesDump:
        """Nodes, and what is bound to them: the queue counts nothing itself."""
        nominated = Nominations(self.view.pods_by_uid.values(), self._profiles)
        return of_view(self.view, nominated, most=most, most_pods=most_pods)

    def held(self, view: Contents) -> Held:
        """What it holds with this view."""
        core = self._leads()
        if core is None:
            return Held(view)
        pods = {uid: f"{'/'.join(pod.key)} ({uid})" for uid, pod in core.leader.queue.pods.items()}
        return Held(view, waiting=Waiting(pods, self._is_pending))

    def _is_pending(self, pod: PodView) -> bool:
        return is_pending(pod, self._profiles)
