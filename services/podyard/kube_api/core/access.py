"""Who may do what: the trust boundary of the lab, as the Kubernetes API asks for it.

People read and write everything, readers read everything but values of Secrets, nobody else anything. RBAC
objects are stored, and not enforced.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.kube_api.core.errors import ApiError, qualified
from podyard.objects.documents import Document, mapping

READING: Final = frozenset({"get", "list", "watch"})
FREE: Final = frozenset({"/healthz", "/livez", "/readyz", "/version"})
"""What everybody may read, with what is below health."""
RBAC: Final = "rbac.authorization.k8s.io"
NOT_ENFORCED: Final = "RBAC objects are stored and not enforced here: groups say who may do what"
"""Of each write of one."""
ASKED: Final = frozenset({"selfsubjectaccessreviews", "selfsubjectreviews"})
"""What everybody who said who he is may ask of himself."""
ABOUT_OTHERS: Final = "tokenreviews"
"""What people ask of a token that they were shown."""


class Identity(NamedTuple):
    """Somebody who asks, as his certificate or token says."""

    user: str
    groups: frozenset[str]


class Wish(NamedTuple):
    """What somebody wants to do. Of a path that is no resource's, `resource` is empty."""

    verb: str
    """get, list, watch, create, update, patch, delete, deletecollection; of a path get."""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Access:
    """What each identity may do."""

    def __init__(self, people: Sequence[str], readers: Sequence[str]) -> None:
        """:param people: groups; as `readers`"""
        self._people = frozenset(people)
        self._readers = frozenset(readers)

    def may(self, identity: Identity, wish: Wish) -> bool:
        """Whether somebody may do it."""
        if wish.resource in ASKED and wish.verb == "create":
            return True
        if not self._people.isdisjoint(identity.groups):
            return True
        if self._readers.isdisjoint(identity.groups):
            return False
        return wish.verb in READING

    def may_see_values(self, identity: Identity) -> bool:
        """Whether somebody is shown the values of Secrets; others see that there are some."""
        return not self._people.isdisjoint(identity.groups)

    def review(self, identity: Identity, asked: Document) -> bool:
        """Whether somebody may do what a SelfSubjectAccessReview asks for."""
        spec = mapping(asked, "spec")
        about, path = mapping(spec, "resourceAttributes"), mapping(spec, "nonResourceAttributes")
        wish = (
            Wish(str(path.get("verb", "get")), path=str(path.get("path", "")))
            if path and not about
            else Wish(
                *(
                    str(about.get(name, ""))
                    for name in ("verb", "group", "resource", "subresource", "namespace", "name")
                )
            )
        )
        return self.may(identity, wish)

    def check(self, identity: Identity, wish: Wish) -> None:
        """
        :raises ApiError: 403, in the reference's words
        """
        if not self.may(identity, wish):
            raise forbidden(identity, wish)


def is_question(resource: str) -> bool:
    """Whether a resource is nothing but questions, which are answered here."""
    return resource in ASKED or resource == ABOUT_OTHERS


def is_free(path: str) -> bool:
    """Whether a path is for everybody, whoever he is."""
    return path in FREE or path.startswith(("/healthz/", "/livez/", "/readyz/"))


def unauthorized() -> ApiError:
    """Nobody knows who asks. Source: NewUnauthorized."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(identity: Identity, wish: Wish) -> ApiError:
    """Source: kubernetes v1.36.2, apiserver/pkg/endpoints/handlers/responsewriters/errors.go,
    forbiddenMessage."""
    said = f'User "{identity.user}" cannot {wish.verb}'
    if not wish.resource:
        message = f'{said} path "{wish.path}"'
        return ApiError(403, "Forbidden", f"forbidden: {message}")
    resource = f"{wish.resource}/{wish.subresource}" if wish.subresource else wish.resource
    where = f'in the namespace "{wish.namespace}"' if wish.namespace else "at the cluster scope"
    told = f'{said} resource "{resource}" in API group "{wish.group}" {where}'
    named = (
        f'{qualified(wish.resource, wish.group)} "{wish.name}"' if wish.name else qualified(wish.resource, wish.group)
    )
    return ApiError(
        403, "Forbidden", f"{named} is forbidden: {told}", name=wish.name, group=wish.group, kind=wish.resource
    )
