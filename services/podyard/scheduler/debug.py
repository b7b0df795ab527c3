"""What the scheduler shows on `/debug`: its term's core and view."""

from podyard.cluster.comparing import Contents, Held
from podyard.cluster.dumping import NodesDump, WaitingDump
from podyard.cluster.view import ClusterView
from podyard.scheduler.core.scheduler import Scheduler
from podyard.shell.informer import Followed


class Shown:
    """Of one term."""

    def __init__(self, core: Scheduler, view: ClusterView, followed: Followed) -> None:
        self.view = view
        self.followed = followed
        self._core = core

    def queue(self, most: int) -> WaitingDump:
        """Pods that were popped and are not settled."""
        return self._core.held_pods(most)

    def nodes(self, most: int, most_pods: int) -> NodesDump:
        """Nodes as it counts them."""
        return self._core.held_nodes(most, most_pods)

    def held(self, view: Contents) -> Held | None:
        """What it holds with this view."""
        books = self._core.books()
        return None if books is None else Held(view, books)
