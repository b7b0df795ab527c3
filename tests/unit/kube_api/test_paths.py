"""Where URLs lead. Source of the rows: apiserver v0.36.2, pkg/endpoints/request/requestinfo_test.go."""

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.paths import LONGEST_PATH, Asked, parse

ROWS = [
    ("GET", "/api/v1/namespaces", "list - v1 - namespaces - -"),
    ("GET", "/api/v1/namespaces/other", "get - v1 - namespaces other -"),
    ("PUT", "/api/v1/namespaces/other/finalize", "update - v1 - namespaces other finalize"),
    ("GET", "/api/v1/namespaces/other/pods", "list - v1 other pods - -"),
    ("HEAD", "/api/v1/namespaces/other/pods", "list - v1 other pods - -"),
    ("GET", "/api/v1/namespaces/other/pods/foo", "get - v1 other pods foo -"),
    ("GET", "/api/v1/pods", "list - v1 - pods - -"),
    ("GET", "/api/v1/pods?watch=true", "watch - v1 - pods - -"),
    ("GET", "/api/v1/pods?watch", "watch - v1 - pods - -"),
    ("GET", "/api/v1/pods?watch=False", "list - v1 - pods - -"),
    ("GET", "/api/v1/pods?watch=0", "list - v1 - pods - -"),
    ("GET", "/api/v1/pods?nobody=knows", "list - v1 - pods - -"),
    ("GET", "/api/v1/namespaces/other/pods/foo?watch=true", "get - v1 other pods foo -"),
    ("POST", "/api/v1/namespaces/other/pods", "create - v1 other pods - -"),
    ("POST", "/api/v1/namespaces/other/pods/foo/eviction", "create - v1 other pods foo eviction"),
    ("PATCH", "/apis/apps/v1/namespaces/other/deployments/foo/scale", "patch apps v1 other deployments foo scale"),
    ("DELETE", "/api/v1/namespaces/other/pods/foo", "delete - v1 other pods foo -"),
    ("DELETE", "/api/v1/namespaces/other/pods", "deletecollection - v1 other pods - -"),
    ("GET", "/api/v1/namespaces/other/pods/foo/proxy/a/b", "get - v1 other pods foo proxy"),
    ("GET", "/api/v1/namespaces/namespaces/namespaces", "list - v1 namespaces namespaces - -"),
    ("GET", "/api/v1/nodes/n1/", "get - v1 - nodes n1 -"),
]

BESIDE = [
    ("/api", Asked("core")),
    ("/api/", Asked("core")),
    ("/apis", Asked("groups")),
    ("/apis/apps", Asked("group", group="apps")),
    ("/api/v1", Asked("resources", version="v1")),
    ("/apis/apps/v1", Asked("resources", group="apps", version="v1")),
    ("/version", Asked("version")),
    ("/healthz", Asked("health", resource="healthz")),
    ("/livez/ping", Asked("health", resource="livez", name="ping")),
    ("/openapi/v3", Asked("openapi")),
    ("/openapi/v3/api/v1", Asked("openapi-document", version="v1")),
    ("/openapi/v3/apis/apps/v1", Asked("openapi-document", group="apps", version="v1")),
]


def asked(method: str, url: str) -> Asked:
    path, _, query = url.partition("?")
    return parse(method, path, parse_qs(query, keep_blank_values=True))


@pytest.mark.parametrize(("method", "url", "row"), ROWS)
def test_requests_for_objects(method: str, url: str, row: str) -> None:
    assert asked(method, url) == Asked("resource", *("" if part == "-" else part for part in row.split()))


@pytest.mark.parametrize(("path", "where"), BESIDE)
def test_what_is_beside_objects(path: str, where: Asked) -> None:
    assert parse("GET", path, {}) == where


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/nonsense", "/openapi", "/openapi/v3/apps", "/openapi/v4", "/version/1", "/livez/a/b"),
        *("/api//v1", "/api/v1//pods", "/api/v1/pods/a/status/more", "/api/v1/" + "p" * LONGEST_PATH),
    ],
)
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse("GET", path, {})
    assert (refused.value.code, refused.value.message) == (404, "the server could not find the requested resource")


def test_the_old_prefixes_are_refused() -> None:
    with pytest.raises(ApiError) as refused:
        parse("GET", "/api/v1/watch/namespaces/other/pods", {})
    assert refused.value.code == 501
    assert refused.value.message == (
        "paths that begin with watch are not served: watch with the query parameter watch=true on a list instead"
    )
    with pytest.raises(ApiError, match="paths that begin with proxy are not served: nothing is proxied"):
        parse("GET", "/api/v1/proxy/pods/foo", {})


def test_openapi_v2_is_one_document() -> None:
    assert parse("GET", "/openapi/v2", {}).goal == "openapi-v2"


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api"), ("DELETE", "/version"), ("OPTIONS", "/api/v1/pods"), ("", "/api/v1/pods")]
)
def test_methods_that_nothing_takes(method: str, path: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(method, path, {})
    assert (refused.value.code, refused.value.reason) == (405, "MethodNotAllowed")


WORDS = st.text("abcdefgh.-", min_size=1, max_size=8).filter(lambda word: word not in ("watch", "proxy"))


@given(WORDS, WORDS, WORDS, WORDS, WORDS, WORDS)
def test_a_path_says_its_parts(
    group: str, version: str, namespace: str, resource: str, name: str, subresource: str
) -> None:
    path = f"/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}/{subresource}"
    parts = Asked("resource", "get", group, version, namespace, resource, name, subresource)
    assert parse("GET", path, {}) == parts


@given(st.sampled_from(["GET", "POST", "TRACE"]), st.text("/apisv1namespaces.%\x00é", max_size=60))
def test_any_path_leads_somewhere_or_is_refused(method: str, path: str) -> None:
    for begin in ("/", "/api/", "/apis/", "/openapi/"):
        assert outcome(method, begin + path) in (200, 404, 405, 501)


def outcome(method: str, path: str) -> int:
    """The code of the refusal, 200 if there is none."""
    try:
        parse(method, path, {})
    except ApiError as refused:
        return refused.code
    return 200
