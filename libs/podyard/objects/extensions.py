"""CustomResourceDefinitions: what the api goes by, without the schemas, which may be a megabyte."""

from typing import Final

from podyard.objects.meta import ObjectMeta, View

DEFINITIONS: Final = "customresourcedefinitions"


class Names(View, frozen=True, kw_only=True):
    """How a custom kind is called."""

    kind: str = ""
    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] = ()


class Version(View, frozen=True, kw_only=True):
    """A version of a custom kind."""

    name: str = ""
    served: bool = False
    storage: bool = False


class Conversion(View, frozen=True, kw_only=True):
    """How an object of one version becomes one of another."""

    strategy: str = ""
    """`None`, which changes the apiVersion alone, or `Webhook`."""


class CustomResourceDefinitionSpec(View, frozen=True, kw_only=True):
    """Source: apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go."""

    group: str = ""
    names: Names = Names()
    scope: str = ""
    """`Namespaced` or `Cluster`."""
    versions: tuple[Version, ...] = ()
    conversion: Conversion = Conversion()


class CustomResourceDefinition(View, frozen=True, kw_only=True):
    """A kind of somebody else's, as it was declared."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()

    def served(self) -> tuple[str, ...]:
        """Names of the versions that may be written."""
        return tuple(version.name for version in self.spec.versions if version.served)

    def storing(self) -> str:
        """The version in which objects of all versions are stored; empty if there is none, or if a webhook
        would have to convert them."""
        if self.spec.conversion.strategy == "Webhook":
            return ""
        return next((version.name for version in self.spec.versions if version.storage), "")
