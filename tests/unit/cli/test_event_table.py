"""The table of events on terminals of different widths, and in a pipe."""

from podyard.cli.render import events

HEADERS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
ROWS = [
    ("2m", "Normal", "Scheduled", "pod/web-1", "Successfully assigned default/web-1 to node-1"),
    ("3s", "Warning", "FailedScheduling", "pod/web-2", "0/5 nodes are available: " + "3 Insufficient cpu, " * 4),
]


def shown(width: int | None) -> list[str]:
    columns = events.widths(HEADERS, ROWS)
    return [*events.head(HEADERS, columns, width), *events.body(ROWS, columns, width)]


def test_a_pipe_gets_a_line_for_each() -> None:
    lines = shown(None)
    assert len(lines) == 3
    assert lines[0] == "LAST SEEN   TYPE      REASON             OBJECT      MESSAGE"
    assert (
        lines[1] == "2m          Normal    Scheduled          pod/web-1   Successfully assigned default/web-1 to node-1"
    )


def test_a_wide_terminal_folds_the_message_below_itself() -> None:
    lines = shown(110)
    assert max(map(len, lines)) <= 110
    assert lines[2].endswith("0/5 nodes are available: 3 Insufficient cpu, 3")
    assert lines[3] == " " * 53 + "Insufficient cpu, 3 Insufficient cpu, 3 Insufficient cpu,"


def test_a_narrow_one_has_it_below_the_row() -> None:
    lines = shown(80)
    assert max(map(len, lines)) <= 80
    assert lines[1] == "2m          Normal    Scheduled          pod/web-1"
    assert lines[2] == "    Successfully assigned default/web-1 to node-1"


def test_columns_keep_the_width_that_they_had() -> None:
    assert events.widths(HEADERS, ROWS, [9, 20, 3, 2]) == [9, 20, 16, 9]
