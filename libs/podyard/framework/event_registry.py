"""Which plugin wants to hear of which cluster event: built once from what the plugins register, then only
read.

Source: kube-scheduler v1.36.2, pkg/scheduler/scheduler.go (buildQueueingHintMap, unionedGVKs).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from podyard.framework import answers, events
from podyard.framework.events import ClusterEvent, Hint, OwnHint, OwnRegistration, Registration
from podyard.framework.extenders import REJECTOR
from podyard.framework.profile import Profile
from podyard.framework.status import described
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects import kinds
from podyard.proto.actions import ActionType

EVENTS_BYTES: Final = 1024 * 1024
"""What is remembered of who listens to which event, each: the resources of custom kinds' are somebody's
words."""
EVENT_BYTES: Final = 1024
"""What one takes besides its key."""


@runtime_checkable
class RegistersEvents(Protocol):
    """A plugin that says what may make the pods it rejected schedulable."""

    def events_to_register(self) -> Sequence[Registration]:
        """Asked once, when the registry is built. An empty answer: no event helps."""
        ...


@runtime_checkable
class RegistersOwnEvents(Protocol):
    """A plugin that knows more than the reference of what may help the pods it rejected, if it says why
    (`Status.obstacles`)."""

    def own_events_to_register(self) -> Sequence[OwnRegistration]:
        """Asked once, when the registry is built."""
        ...


@runtime_checkable
class ReadsObjects(Protocol):
    """A plugin that looks at kinds of objects of which no event could help its pods (budgets, for
    preemption)."""

    reads: ClassVar[tuple[str, ...]]
    """Plurals, `poddisruptionbudgets`: followed like the kinds that plugins registered events of."""


class RegistrationChangedError(ValueError):
    """A plugin answered `events_to_register()` twice, differently."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        super().__init__(
            f"plugin {plugin!r} registers other events when asked again; events_to_register() must always answer the same"
        )


class RegistrationError(ValueError):
    """A plugin raised when it was asked for its events, or answered what is no list of registrations: nothing
    can be started with it."""

    def __init__(self, plugin: str, detail: str) -> None:
        self.plugin = plugin
        super().__init__(f"plugin {plugin!r} registers no events: {detail}")


R = TypeVar("R", Registration, OwnRegistration)


class Listener(NamedTuple):
    """One plugin's registrations that match an incoming event: their hints in the order of registration."""

    plugin: str
    hints: tuple[Hint | None, ...]


class OwnListener(NamedTuple):
    """The same of its own registrations."""

    plugin: str
    hints: tuple[OwnHint, ...]


def _needs_taint_updates(registrations: Sequence[Registration]) -> bool:
    """Whether Node/Add is registered and Node/UpdateNodeTaint is not
    (docs/rules.md, node-add-brings-taint-updates).

    A node is often added tainted (not ready); then the removal of the taint is what makes it usable. Upstream
    adds the registration for the same reason (kubernetes#109437).
    """
    add = taint = False
    for registration in registrations:
        resource, action, _ = registration.event
        if resource == events.NODE:
            add = add or bool(action & ActionType.ADD)
            taint = taint or bool(action & ActionType.UPDATE_NODE_TAINT)
    return add and not taint


def registrations_of(plugin: object) -> tuple[Registration, ...]:
    """What `plugin` registers: its own answer, or all events if it declares none, plus the rule about taints.

    :raises RegistrationError: if it cannot say
    """
    if not isinstance(plugin, RegistersEvents):
        return tuple(
            Registration(ClusterEvent(resource, ActionType.ALL)) for resource in events.EVENTS_OF_SILENT_PLUGINS
        )
    own = _asked(plugin, plugin.events_to_register, Registration)
    if _needs_taint_updates(own):
        own += (Registration(events.NODE_UPDATE_TAINT),)
    return own


def _asked(plugin: object, asked: Callable[[], Sequence[R]], kind: type[R]) -> tuple[R, ...]:
    """
    :raises RegistrationError: if the plugin raises, or answers anything but a sequence of registrations
    """
    try:
        return tuple([_registration(one, kind) for one in asked()])
    except Exception as fault:  # the boundary to plugins
        raise RegistrationError(str(getattr(plugin, "name", type(plugin).__name__)), described(fault)) from fault


def _registration(given: object, kind: type[R]) -> R:
    """
    :raises NonsenseError: if it is none, or its parts are not what they should be
    """
    one = answers.of_type(given, kind)
    event = answers.of_type(one.event, ClusterEvent)
    answers.of_type(event.resource, str)
    answers.of_type(event.action, ActionType)
    for part in (one.hint, one.new_index):
        if part is not None and not callable(part):
            raise answers.NonsenseError(f"a registration for {event.label} with a hint or index that cannot be called")
    return one


class EventRegistry:
    """The registrations of all plugins of one profile, and fast answers about incoming events.

    :param plugins: plugin name -> its registrations, in profile order; see `of_plugins`
    :param reads: plurals of the kinds that plugins read without registering events of them
    :param own: plugin name -> its registrations beyond the reference's, for pods of which it names obstacles
    """

    def __init__(
        self,
        plugins: Mapping[str, Sequence[Registration]],
        reads: Iterable[str] = (),
        own: Mapping[str, Sequence[OwnRegistration]] | None = None,
    ) -> None:
        self.plugins: dict[str, tuple[Registration, ...]] = {name: tuple(given) for name, given in plugins.items()}
        self.own: dict[str, tuple[OwnRegistration, ...]] = {name: tuple(given) for name, given in (own or {}).items()}
        self.reads = frozenset(reads)
        self._matching = Kept[tuple[str, int], dict[str, Listener]](EVENTS_BYTES)
        self._own_matching: dict[tuple[str, int], dict[str, OwnListener]] = {}

    @classmethod
    def of_plugins(cls, plugins: Iterable[tuple[str, object]]) -> "EventRegistry":
        """Ask every plugin (name and instance, in profile order) what it registers.

        :raises RegistrationChangedError: if one answers differently when asked again
        """
        by_plugin: dict[str, tuple[Registration, ...]] = {}
        for name, plugin in plugins:
            by_plugin[name] = registrations_of(plugin)
            again = registrations_of(plugin)
            if [registration.event for registration in again] != [
                registration.event for registration in by_plugin[name]
            ]:
                raise RegistrationChangedError(name)
        return cls(by_plugin)

    @classmethod
    def of_profile(cls, profile: Profile, *, extenders: bool = False, own_hints: bool = True) -> "EventRegistry":
        """The registrations of the plugins that can reject a pod; the others are not asked.

        :param extenders: HTTP extenders take part: they count as a plugin that declares nothing
            (docs/rules.md, who-narrows-is-a-rejector)
        :param own_hints: whether plugins' registrations beyond the reference's count
        :raises RegistrationChangedError: if a plugin answers differently when asked again
        """
        points = (profile.pre_enqueue, profile.pre_filter, profile.filter, profile.reserve, profile.permit)
        rejecting = {plugin.name for point in points for plugin in point}
        registry = cls.of_plugins((plugin.name, plugin) for plugin in profile.plugins if plugin.name in rejecting)
        readers = (plugin for plugin in profile.plugins if isinstance(plugin, ReadsObjects))
        if extenders:
            registry.plugins[REJECTOR] = registrations_of(None)
        own = {
            plugin.name: _asked(plugin, plugin.own_events_to_register, OwnRegistration)
            for plugin in profile.plugins
            if own_hints and plugin.name in rejecting and isinstance(plugin, RegistersOwnEvents)
        }
        return cls(registry.plugins, (resource for plugin in readers for resource in plugin.reads), own)

    def listeners(self, event: ClusterEvent) -> Mapping[str, Listener]:
        """Plugin -> its matching registrations, in profile order; remembered per (resource, action)."""
        key = (event.resource, int(event.action))
        matching = self._matching.get(key)
        if matching is None:
            matching = self._match(event)
            self._matching.keep(key, matching, EVENT_BYTES + bytes_of(key))
        return matching

    def _match(self, event: ClusterEvent) -> dict[str, Listener]:
        listeners: dict[str, Listener] = {}
        for plugin, registrations in self.plugins.items():
            hints = tuple(entry.hint for entry in registrations if events.match(entry.event, event))
            if hints:
                listeners[plugin] = Listener(plugin, hints)
        return listeners

    def own_listeners(self, event: ClusterEvent) -> Mapping[str, OwnListener]:
        """The same of the plugins' own registrations."""
        key = (event.resource, int(event.action))
        listeners = self._own_matching.get(key)
        if listeners is None:
            matching = {
                plugin: tuple(entry.hint for entry in registrations if events.match(entry.event, event))
                for plugin, registrations in self.own.items()
            }
            listeners = {plugin: OwnListener(plugin, hints) for plugin, hints in matching.items() if hints}
            self._own_matching[key] = listeners
        return listeners

    def of_resource(self, resource: str) -> tuple[str, ...]:
        """Plugins that registered any action of a resource: whom a change concerns of which a part was
        missed."""
        return tuple(
            plugin
            for plugin, registrations in self.plugins.items()
            if any(
                events.match_resources(entry.event.resource, resource)
                for entry in (*registrations, *self.own.get(plugin, ()))
            )
        )

    def is_interested(self, event: ClusterEvent) -> bool:
        """Whether anybody registered a matching event; wildcard events interest always."""
        return event.is_wildcard or bool(self.listeners(event)) or bool(self.own_listeners(event))

    def event_to_plugins(self) -> dict[tuple[str, int], tuple[str, ...]]:
        """Distinct registered (resource, action) -> plugins that registered exactly it, sorted."""
        plugins_of: dict[tuple[str, int], set[str]] = {}
        for plugin, registrations in self.plugins.items():
            for registration in registrations:
                resource, action, _ = registration.event
                plugins_of.setdefault((resource, int(action)), set()).add(plugin)
        return {key: tuple(sorted(plugins)) for key, plugins in sorted(plugins_of.items())}

    def actions_by_resource(self) -> dict[str, ActionType]:
        """Resource -> all actions that anybody registered: what the informers have to follow."""
        actions: dict[str, ActionType] = {}
        for registrations in (*self.plugins.values(), *self.own.values()):
            for registration in registrations:
                resource, action, _ = registration.event
                actions[resource] = actions.get(resource, ActionType.NONE) | action
        return actions


def watched_resources(registries: Iterable[EventRegistry]) -> tuple[str, ...]:
    """Plurals of the kinds that any plugin registered events of or reads, sorted: what queue, scheduler and
    binder follow alike.

    :raises UnknownKindError: for a resource that is neither a known kind nor `<plural>.<version>.<group>`
    """
    registries = tuple(registries)
    wanted = {resource for registry in registries for resource in registry.actions_by_resource()}
    followed = {kinds.kind_of_event(resource).resource for resource in wanted if resource != events.WILDCARD}
    followed.update(kinds.kind_of_resource(resource).resource for registry in registries for resource in registry.reads)
    return tuple(sorted(followed))


def followed_by(profiles: Iterable[Profile], *, extenders: bool) -> tuple[str, ...]:
    """The same of these profiles.

    :param extenders: whether HTTP extenders take part
    :raises UnknownKindError: as `watched_resources`
    """
    return watched_resources(EventRegistry.of_profile(profile, extenders=extenders) for profile in profiles)
