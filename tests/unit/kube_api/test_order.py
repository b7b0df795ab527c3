"""In which order groups and versions stand."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.order import group_place, version_place


def test_versions_that_stay_come_first_the_newest_before_the_older() -> None:
    """The last two are no versions of that form, and go by name. Source: apimachinery v0.36.2,
    pkg/version/helpers_test.go."""
    ordered = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta3",
        "v3beta2",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ]
    assert all(version_place(one) < version_place(next_) for one, next_ in pairwise(ordered))


def test_groups_of_one_priority_go_by_name() -> None:
    assert sorted(["apiextensions.k8s.io", "admissionregistration.k8s.io"], key=group_place) == [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
    ]


@given(st.text(max_size=12), st.text(max_size=12))
def test_no_two_versions_share_a_place(one: str, other: str) -> None:
    assert (version_place(one) == version_place(other)) == (one == other)
