"""What `podyard pressure node` makes of its options."""

import pytest

from podyard.cli.__main__ import main
from podyard.cli.commands.pressure import courses_of, unused_of
from podyard.cli.errors import InputError
from podyard.proto.signals import Course, Point, Unused

CAPACITY = {"cpu": "4", "memory": "8Gi"}


def test_a_percentage_is_of_what_the_node_has_and_a_ramp_takes_its_time():
    assert courses_of({"memory": "75%", "cpu": "50%"}, CAPACITY, "30s", "") == (
        Course(signal="memory.available", capacity=8 * 2**30, points=(Point(after_s=30, amount=2 * 2**30),)),
        Course(resource="cpu", points=(Point(after_s=30, amount=2_000_000_000),)),
    )


def test_a_spike_goes_back_to_where_it_stood():
    (found,) = courses_of({"processes": "900 of 1000"}, {}, "", "1m")
    assert (found.signal, found.capacity) == ("pid.available", 1000)
    assert [(point.after_s, point.amount) for point in found.points] == [(0, 100), (60, 100), (60, None)]


def test_all_faults_are_told_with_their_option():
    with pytest.raises(InputError) as told:
        courses_of({"memory": "101%", "disk": "5Gi", "inodes": "many of 10"}, CAPACITY, "", "soon")
    assert [line.partition(":")[0] for line in told.value.message.splitlines()] == [
        "--spike", "--memory", "--disk", "--inodes"
    ]  # fmt: skip


def test_images_are_a_quantity_and_part_of_what_the_disk_holds(capsys: pytest.CaptureFixture[str]):
    assert (unused_of("30Gi"), unused_of("")) == (Unused(disk_bytes=30 * 2**30), Unused())
    for wrong, told in (("30%", "--images: '30%': quantities must match"), ("-1", "--images: '-1': must be 0 or more")):
        with pytest.raises(InputError) as error:
            unused_of(wrong)
        assert error.value.message.startswith(told)
    assert main(["pressure", "node", "n1", "--images", "30Gi"]) == 2
    assert "images are part of what --disk uses" in capsys.readouterr().err
