"""What the binder shows on `/debug`: the core and the view of the term that is on."""

from podyard.binder.core.binder import Binder
from podyard.cluster.comparing import Contents, Held
from podyard.cluster.dumping import NodesDump, WaitingDump
from podyard.cluster.view import ClusterView
from podyard.shell.informer import Followed


class Shown:
    """Of one process. Its terms say which of them is on."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.term: tuple[Binder, ClusterView] | None = None
        """The core of the one that is on, and what it reads into."""

    @property
    def view(self) -> ClusterView | None:
        """None: it stands by, or has not listed yet."""
        return None if self.term is None or not self.term[0].serves else self.term[1]

    def queue(self, most: int) -> WaitingDump | None:
        """Decisions without an answer."""
        return None if self.term is None else self.term[0].held_decisions(most)

    def nodes(self, most: int, most_pods: int) -> NodesDump | None:
        """Nodes as it counts them."""
        return None if self.term is None else self.term[0].held_nodes(most, most_pods)

    def held(self, view: Contents) -> Held | None:
        """What it holds with this view."""
        return None if self.term is None else Held(view, self.term[0].books())
