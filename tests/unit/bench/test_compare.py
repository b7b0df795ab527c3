"""`bench compare`: rows, medians, ratios, result files, going on where it was, the table and the page."""

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
import yaml
from rich.console import Console

from podyard.bench.compare import podyard_run, reference_run, rows, run_files, running, sides, summary, workloads
from podyard.bench.compare.figures import Figures, Run
from podyard.bench.compare.outcome import Outcome, RunError
from podyard.bench.compare.reference_run import Programs
from podyard.bench.compare.rows import ROWS, Row, UnknownRowError
from podyard.bench.compare.running import Failure, Place
from podyard.bench.compare.sides import PACED as AS_MANY
from podyard.bench.compare.sides import PODYARD, REFERENCE, SYNCED, Side, UnknownSideError
from podyard.bench.compare.workloads import Prepared, WorkloadError
from podyard.bench.machine import Commit, Machine
from podyard.bench.render import compare as shown
from podyard.bench.render import compare_page, compare_picture
from podyard.cli.__main__ import main
from podyard.cli.errors import CliError
from tests.unit.docs.test_widths import in_page

BASIC, SPREADING, PACED, CHURNING = (
    next(row for row in ROWS if row.name == name) for name in ("basic", "spreading", "pod-add", "mixed-churn")
)
MACHINE = Machine(cores=2, cpu="a CPU", python="3.11.7", nats_server="2.15.1")
BOTH = (REFERENCE, PODYARD)


def figures(rate: float | None, *, seconds: float = 40.0, pods: int = 10_000, cpu: float = 1000.0) -> Figures:
    return Figures(
        pods=pods,
        seconds=seconds,
        pods_per_second=rate,
        cpu_us_per_pod={"one": cpu * 0.75, "other": cpu * 0.25},
        memory_mib=1000.0,
        attempt_mean_ms=30.0,
        attempt_p99_ms=200.0,
    )


def run(row: Row, pair: int, side: Side, found: Figures, *, notes: tuple[str, ...] = ()) -> Run:
    return Run(
        row=row.name,
        side=side.name,
        pair=pair,
        workload=row.full_name,
        parameters=dict(row.more),
        started="2026-11-28T01:00:00Z",
        load=0.1 * pair,
        others_cores=0.02,
        machine=MACHINE,
        versions={"kube-scheduler": "v1.36.2"} if side == REFERENCE else {"nats-server": "2.15.1"},
        commit=Commit("abc1234", False),
        figures=found,
        notes=list(notes),
    )


def pairs(row: Row, theirs: tuple[float, ...], ours: tuple[float, ...], *, seconds: float = 40.0) -> list[Run]:
    made: list[Run] = []
    for pair, (one, other) in enumerate(zip(theirs, ours, strict=True), start=1):
        made.append(run(row, pair, REFERENCE, figures(one, cpu=6000.0)))
        made.append(run(row, pair, PODYARD, figures(other, seconds=seconds, cpu=400.0)))
    return made


# ---- rows and workloads


def test_the_table_is_chosen_whole_or_by_name() -> None:
    assert rows.chosen([]) == ROWS
    assert rows.chosen(["spreading", "basic"]) == (BASIC, SPREADING), "in the table's order"
    with pytest.raises(UnknownRowError, match=r"no row is named basics; there are basic, "):
        rows.chosen(["basics"])


def test_names_of_rows_are_names_of_folders() -> None:
    names = [row.name for row in (*ROWS, *rows.SMALL)]
    assert len({*names}) == len(names)
    assert all(re.fullmatch(r"[a-z-]+", name) for name in names)


def test_sides_run_the_reference_first() -> None:
    assert sides.chosen(["podyard", "reference"]) == BOTH
    with pytest.raises(UnknownSideError, match="no side is named volcano"):
        sides.chosen(["volcano"])


CASES = [
    {"name": "Other", "workloads": []},
    {
        "name": "SchedulingBasic",
        "defaultPodTemplatePath": "../templates/pod.yaml",
        "workloadTemplate": [{"opcode": "createPods", "countParam": "$measurePods"}],
        "workloads": [
            {"name": "5Nodes", "params": {"measurePods": 10}},
            {"name": BASIC.workload, "threshold": 1, "params": {"initNodes": 5000, "measurePods": 10_000}},
        ],
    },
]


def test_more_pods_are_the_one_thing_that_is_changed() -> None:
    (case,) = workloads.only(CASES, BASIC)
    assert case["workloadTemplate"] == CASES[1]["workloadTemplate"]
    assert case["workloads"] == [
        {"name": BASIC.workload, "threshold": 1, "params": {"initNodes": 5000, "measurePods": 30_000}}
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (BASIC._replace(case="Nothing"), "no case named Nothing; there are Other, SchedulingBasic"),
        (BASIC._replace(workload="6Nodes"), "no workload of SchedulingBasic named 6Nodes; there are 5Nodes, "),
        (BASIC._replace(more={"pods": 1}), "has no parameter pods; it has initNodes, measurePods"),
    ],
)
def test_a_workload_that_the_release_does_not_have_is_refused(row: Row, said: str) -> None:
    with pytest.raises(WorkloadError, match=re.escape(said)):
        workloads.only(CASES, row)


def released(folder: Path) -> Path:
    """A folder as the release has it."""
    (folder / "misc").mkdir(parents=True)
    (folder / "templates").mkdir()
    (folder / "misc" / "performance-config.yaml").write_text(yaml.safe_dump(CASES))
    (folder / "templates" / "pod.yaml").write_text("kind: Pod\n")
    (folder / "misc" / "misc_test.go").write_text("package misc\n")
    return folder


def test_both_sides_read_the_files_of_the_release(tmp_path: Path) -> None:
    source, to = released(tmp_path / "released"), tmp_path / "workloads"
    as_written, measured = workloads.prepare(source, to, BASIC._replace(more={}))
    assert measured is None
    assert as_written.read_bytes() == (source / "misc" / "performance-config.yaml").read_bytes()
    changed = workloads.prepare(source, to, BASIC).configuration
    assert yaml.safe_load(changed.read_text()) == workloads.only(CASES, BASIC)
    assert (changed.parent / "../templates/pod.yaml").read_text() == "kind: Pod\n"
    assert not list(to.rglob("*.go"))


# ---- medians and ratios


def reached(found: summary.Summary, side: Side = PODYARD) -> bool:
    compared = summary.compared(found, side.name)
    assert compared is not None
    return compared.reached


def test_a_ratio_is_that_of_medians() -> None:
    found = summary.summarise(BASIC, pairs(BASIC, (200.0, 300.0, 250.0), (5000.0, 4800.0, 1000.0)))
    against = found.against[PODYARD.name]
    assert found.sides[REFERENCE.name].pods_per_second == 250.0
    assert against.rate == pytest.approx(4800 / 250)
    assert against.rates == [25.0, 16.0, 4.0]
    assert against.cpu == pytest.approx(15.0)
    assert not against.whole
    assert summary.compared(found, PODYARD.name) == (pytest.approx(4800 / 250), 18, "")
    assert reached(found)
    assert summary.compared(found, SYNCED.name) is None


def test_a_short_run_is_compared_by_the_time_to_the_last_binding() -> None:
    """On both sides: 10,000 pods in 40 s against 10,000 in 4 s."""
    found = summary.summarise(BASIC, pairs(BASIC, (200.0,), (5000.0,), seconds=4.0))
    against = found.against[PODYARD.name]
    assert against.whole
    assert against.rate == pytest.approx(10.0)
    assert found.sides[PODYARD.name].pods_per_second is None
    assert not reached(found)


def test_one_short_run_of_several_makes_all_count_so() -> None:
    runs = [*pairs(BASIC, (200.0,), (5000.0,)), *pairs(BASIC, (200.0,), (5000.0,), seconds=4.0)]
    assert summary.summarise(BASIC, runs).against[PODYARD.name].whole


def test_where_the_file_paces_the_pods_cpu_is_compared() -> None:
    found = summary.summarise(PACED, pairs(PACED, (71.0,), (71.0,)))
    assert found.of_cpu
    assert found.goal == rows.CPU_GOAL
    assert reached(found), "15 times"


def test_where_pods_come_at_the_rate_of_the_reference_attempts_are_compared() -> None:
    """30 ms against 2.5."""
    ours = msgspec.structs.replace(figures(250.0), attempt_mean_ms=2.5)
    found = summary.summarise(BASIC, [run(BASIC, 1, REFERENCE, figures(250.0)), run(BASIC, 1, AS_MANY, ours)])
    assert summary.compared(found, AS_MANY.name) == (pytest.approx(12.0), rows.TIME_GOAL, "a")
    assert reached(found, AS_MANY)


def test_pairs_that_lack_a_side_are_no_ratio() -> None:
    runs = [run(BASIC, 1, REFERENCE, figures(200.0)), run(BASIC, 2, PODYARD, figures(4000.0))]
    assert summary.summarise(BASIC, runs).against[PODYARD.name].rates == []
    assert summary.summarise(BASIC, runs[1:]).against == {}


def test_other_pods_on_one_side_are_told() -> None:
    runs = [run(PACED, 1, REFERENCE, figures(71.0)), run(PACED, 1, PODYARD, figures(71.0, pods=9800))]
    told = "podyard: 9,800 pods were bound in the measured part, of the reference 10,000"
    assert summary.summarise(PACED, runs).notes == [told]
    assert summary.summarise(PACED, [runs[0], run(PACED, 1, PODYARD, figures(71.0, pods=9950))]).notes == []


def test_what_is_noted_of_several_sides_is_told_once() -> None:
    runs = [run(BASIC, pair, side, figures(200.0), notes=("short",)) for pair in (1, 2) for side in BOTH]
    assert summary.summarise(BASIC, runs).notes == ["reference, podyard: short"]


# ---- result files, and going on


def test_a_result_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = run(BASIC, 1, PODYARD, figures(4000.0), notes=("a note",))
    file = run_files.place(tmp_path, BASIC, PODYARD.name, 1)
    assert run_files.read(file, BASIC) is None
    run_files.write(file, made)
    assert run_files.read(file, BASIC) == made
    assert run_files.read(file, BASIC._replace(more={})) is None, "of other parameters"
    assert [path.name for path in file.parent.iterdir()] == ["1-podyard.json"]


def test_a_damaged_result_file_is_named(tmp_path: Path) -> None:
    file = run_files.place(tmp_path, BASIC, PODYARD.name, 1)
    file.parent.mkdir()
    file.write_text("{")
    with pytest.raises(CliError, match=re.escape(str(file))):
        run_files.read(file, BASIC)


def test_the_sides_take_turns() -> None:
    order = [step.key for step in running.steps((BASIC, SPREADING), 2, BOTH)]
    assert order[:4] == ["basic/1-reference", "basic/1-podyard", "basic/2-reference", "basic/2-podyard"]
    assert order[4:6] == ["spreading/1-reference", "spreading/1-podyard"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    source = released(tmp_path / "released")
    churning = [{"name": CHURNING.case, "workloads": [{"name": CHURNING.workload, "params": {"measurePods": 1}}]}]
    (source / "misc" / "performance-config.yaml").write_text(yaml.safe_dump([*CASES, *churning]))
    return Place(tmp_path / "results", source, Programs(Path("b"), Path("e")), MACHINE, Commit("abc1234", False))


class Played:
    """The two sides, played: which runs were made, and what Podyard was told of the reference."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self.rates: list[float | None] = []
        self.fails = ""
        monkeypatch.setattr(reference_run, "run", self._reference)
        monkeypatch.setattr(podyard_run, "run", self._podyard)

    def _reference(self, programs: Programs, released: Path, prepared: Prepared, row: Row, log: Path) -> Outcome:
        return self._one(prepared.configuration, log, 250.0)

    def _podyard(
        self, configuration: Path, row: Row, side: Side, log: Path, *, reference_rate: float | None
    ) -> Outcome:
        self.rates.append(reference_rate)
        return self._one(configuration, log, 4500.0)

    def _one(self, configuration: Path, log: Path, rate: float) -> Outcome:
        assert configuration.exists()
        name = f"{log.parent.name}/{log.stem}"
        self.made.append(name)
        if name == self.fails:
            raise RunError("it broke")
        return Outcome(figures(rate), {"go": "1.26"}, [], {"measured": 1})


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played(monkeypatch)


def play(place: Place, wanted: list[running.Step]) -> tuple[dict[str, Run], list[Run | Failure]]:
    there = running.found(place.results, wanted)
    return there, list(running.play(place, wanted, there, lambda step, number: None))


def test_what_has_a_result_is_not_run_again(place: Place, played: Played) -> None:
    wanted = running.steps((BASIC,), 2, BOTH)
    played.fails = "basic/2-reference"
    there, made = play(place, wanted)
    assert [one.reason for one in made if isinstance(one, Failure)] == ["it broke"]
    assert [*there] == ["basic/1-reference", "basic/1-podyard", "basic/2-podyard"], "the others are made all the same"
    played.fails, played.made = "", []
    there, made = play(place, wanted)
    assert played.made == ["basic/2-reference"]
    assert len(there) == 4
    assert [one.figures.pods_per_second for one in made if isinstance(one, Run)] == [250.0]
    assert play(place, wanted)[1] == []


def test_a_run_says_what_it_was_made_of(place: Place, played: Played) -> None:
    (made,) = play(place, running.steps((BASIC,), 1, (REFERENCE,)))[1]
    assert isinstance(made, Run)
    assert (made.workload, made.parameters) == (BASIC.full_name, {"measurePods": 30_000})
    assert (made.commit.hash, made.machine, made.versions) == ("abc1234", MACHINE, {"go": "1.26"})
    assert made.said == {"measured": 1}
    assert made.load >= 0
    assert made.others_cores >= 0
    assert made.started.endswith("Z")


def test_changes_by_the_clock_are_scaled_by_the_rate_of_the_same_pair(place: Place, played: Played) -> None:
    play(place, running.steps((CHURNING,), 1, BOTH))
    assert played.rates == [250.0]


def test_what_is_created_at_the_rate_of_the_reference_needs_one(place: Place, played: Played) -> None:
    wanted = running.steps((BASIC,), 1, (REFERENCE, AS_MANY))
    played.fails = "basic/1-reference"
    assert "is created at the rate of the reference's" in str(play(place, wanted)[1][1])
    played.fails = ""
    play(place, wanted)
    assert played.rates == [250.0]


def test_changes_by_the_clock_without_a_rate_are_no_run(place: Place, played: Played) -> None:
    played.fails = "mixed-churn/1-reference"
    _, made = play(place, running.steps((CHURNING,), 1, BOTH))
    assert played.rates == []
    assert [isinstance(one, Failure) for one in made] == [True, True]
    assert "needs the rate of the reference's" in str(made[1])


# ---- what is shown


def all_rows() -> tuple[list[summary.Summary], list[Run]]:
    runs = [
        *pairs(BASIC, (200.0, 260.0, 250.0), (5000.0, 4800.0, 1000.0)),
        *pairs(SPREADING, (180.0,), (2000.0,), seconds=3.0),
        *pairs(PACED, (71.0,), (71.0,)),
        run(BASIC, 1, SYNCED, figures(2600.0, cpu=500.0), notes=("slow disk",)),
    ]
    by_row: dict[str, list[Run]] = {}
    for one in runs:
        by_row.setdefault(one.row, []).append(one)
    longest = ROWS[9]
    by_row[longest.name] = pairs(longest, (42.0,), (12_345.0,))
    return summary.by_row(ROWS, by_row), [*runs, *by_row[longest.name]]


def test_the_table_fits_a_terminal() -> None:
    written = io.StringIO()
    Console(file=written, width=80).print(shown.report(*all_rows()))
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    cells = {line.split()[0]: line.split() for line in lines[2:]}
    assert cells["basic"] == ["basic", "250", "4,800", "6,000", "400", "19.2", "18"]
    assert cells["synced"][2] == "2,600"
    assert cells["spreading"][5:7] == ["13.3", "w"], "10,000 pods in 40 s against 10,000 in 3 s"
    assert cells["pod-add"][5:] == ["15.0", "c", "10"]
    assert "namespace-anti-affinity" in cells
    assert "…" not in written.getvalue()
    told = " ".join(lines)
    assert "kube-scheduler 1.36.2, nats-server 2.15.1, Podyard abc1234" in told
    assert "load before the runs 0.1 to 0.3; others kept 0.02 to 0.02 cores busy" in told


STREAMS = {"violations": [], "violated": 0, "commits": 9, "bound": 900, "released": 1, "judged": 880, "unjudged": {}}


def test_what_the_checker_says_of_all_runs_is_told() -> None:
    theirs = run(BASIC, 1, REFERENCE, figures(200.0))
    ours = [run(BASIC, pair, PODYARD, figures(2000.0)) for pair in (1, 2)]
    assert shown.checked([theirs, *ours]) == []
    ours = [msgspec.structs.replace(one, said={"streams": STREAMS}) for one in ours]
    assert shown.checked([theirs, *ours]) == ["the checker judged 1,760 of 1,800 bindings of 2 runs: no fault"]
    bad = msgspec.structs.replace(ours[0], said={"streams": {**STREAMS, "violated": 2}})
    assert shown.checked([bad]) == ["the checker judged 880 of 900 bindings of 1 runs: 2 faults"]


def test_a_machine_that_was_not_idle_is_told() -> None:
    quiet = [run(BASIC, 1, REFERENCE, figures(200.0))]
    assert not any("not idle" in line or "host" in line for line in shown.made_on(quiet))
    told = shown.made_on([msgspec.structs.replace(quiet[0], others_cores=0.5, stolen_cores=0.3)])
    assert told[-2:] == [
        "the machine's host took up to 0.30 cores of it",
        "the machine was not idle: these ratios say little",
    ]


def test_the_page_says_what_is_compared_and_what_is_not() -> None:
    page = compare_page.page(*all_rows(), Path("results.svg"))
    assert list(in_page(page)) == [], "no line is too wide"
    assert "| basic | 250 | 4,800 | **19.2** | 25.0, 18.5, 4.0 | 18 | 6,000 | 400 |" in page
    assert "| basic, synced | 250 | 2,600 | 10.4 |" in page
    assert "| spreading | 250 | 3,333 | 13.3 *w* |" in page
    assert "| pod-add | 71 | 71 | **15.0** *c* |" in page
    assert f"| basic | `{BASIC.full_name}` | measurePods: 30,000 | 3 |" in page
    assert "![pods a second of kube-scheduler and Podyard, row by row](results.svg)" in page
    assert "- `basic`: podyard-synced: slow disk." in page
    assert "## From an event" not in page, "neither side knows of it"
    for told in ("sync_interval: always", "TLS", "Measured on 2026-11-28", "2 cores, a CPU", "abc1234"):
        assert told in page


def test_the_page_has_the_time_from_events_to_bindings() -> None:
    theirs, ours = (
        msgspec.structs.replace(figures(71.0), reaction_p50_ms=median, reaction_p99_ms=worst)
        for median, worst in ((50.0, 300.0), (4.0, 20.0))
    )
    runs = [run(PACED, 1, REFERENCE, theirs), run(PACED, 1, PODYARD, ours)]
    page = compare_page.page(summary.by_row(ROWS, {PACED.name: runs}), runs, None)
    assert "| pod-add | 50.0, 300.0 | 4.0, 20.0 | **15.0** |" in page
    assert list(in_page(page)) == []


@pytest.mark.parametrize(
    ("memory", "mean", "worst", "shown"),
    [
        pytest.param(650.0, 3.0, 20.0, "650; 3.00, 20.00 | **0.65** | **10.0**, **10.0**", id="all reached"),
        pytest.param(660.0, 3.1, 21.0, "660; 3.10, 21.00 | 0.66 | 9.7, 9.5", id="none"),
    ],
)
def test_the_page_marks_which_memory_and_time_reach_their_goals(
    memory: float, mean: float, worst: float, shown: str
) -> None:
    ours = msgspec.structs.replace(figures(4500.0), memory_mib=memory, attempt_mean_ms=mean, attempt_p99_ms=worst)
    runs = [run(BASIC, 1, REFERENCE, figures(250.0)), run(BASIC, 1, PODYARD, ours)]
    page = compare_page.page(summary.by_row(ROWS, {BASIC.name: runs}), runs, None)
    assert f"| basic | 1,000; 30.00, 200.00 | {shown} |" in page


def test_the_page_has_attempts_at_the_rate_of_the_reference() -> None:
    ours = msgspec.structs.replace(figures(250.0, cpu=400.0), attempt_mean_ms=2.5, attempt_p99_ms=25.0)
    runs = [run(BASIC, 1, REFERENCE, figures(250.0)), run(BASIC, 1, AS_MANY, ours)]
    page = compare_page.page(summary.by_row(ROWS, {BASIC.name: runs}), runs, None)
    assert "| basic, paced | 250 | 250 | **12.0** *a* | 1.0 | 10 | 1,000 | 400 |" in page
    assert "| basic, paced | 1,000; 30.00, 200.00 | 1,000; 2.50, 25.00 | 1.00 | **12.0**, 8.0 |" in page


def test_the_plot_has_a_bar_for_each_row(tmp_path: Path) -> None:
    file = tmp_path / "plot.svg"
    compare_picture.draw(all_rows()[0], file)
    first = file.read_bytes()
    words = first.decode()
    assert ElementTree.fromstring(words) is not None
    for name in ("basic", "spreading", "pod-add"):
        assert f"<!-- {name} -->" in words
    compare_picture.draw(all_rows()[0], file)
    assert file.read_bytes() == first, "the same results make the same picture"


# ---- the command


def results_of(tmp_path: Path) -> Path:
    for one in pairs(BASIC, (250.0,), (4500.0,)):
        run_files.write(tmp_path / "basic" / f"{one.pair}-{one.side}.json", one)
    return tmp_path


def test_what_is_there_is_shown_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "compare", "--measured-only", "--results", str(results_of(tmp_path / "r"))]
    page = tmp_path / "page.md"
    assert main([*words, "--write", str(page), "-o", "json"]) == 0
    out, told = capsys.readouterr()
    document = msgspec.json.decode(out)
    assert document["rows"][0]["against"]["podyard"]["rate"] == 18.0
    assert page.read_text().startswith("# kube-scheduler's benchmark")
    assert page.with_suffix(".svg").exists()
    assert f"{page} and {page.with_suffix('.svg')}: 2 runs" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "basics"], "no row is named basics"),
        (["--sides", "volcano"], "no side is named volcano"),
        (["--pairs", "0"], "--pairs must be at least 1"),
        (["--write", "page.html"], "a page is written as .md"),
        (["--measured-only", "--write", "page.md", "--results", "/nowhere"], "nothing to write"),
    ],
)
def test_wrong_words_are_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "compare", *words]) == 2
    assert said in capsys.readouterr().err


# ---- Podyard's side

SAID: Mapping[str, object] = {
    "case": BASIC.full_name,
    "pods_per_second_average": 4500.0,
    "pods_bound": 30_000,
    "seconds": 6.5,
    "cpu_us_per_pod": 261.0,
    "cpu_us_per_pod_by_process": {"scheduler": 176.0, "nats-server": 85.0},
    "pss_mib": 400.0,
    "pss_mib_by_process": {"scheduler": 300.0, "nats-server": 100.0, "client": 90.0},
    "attempt": {"count": 30_000, "mean_ms": 2.0, "p50_ms": 1.5, "p99_ms": 9.0},
    "reaction": {"count": 100, "mean_ms": 6.0, "p50_ms": 5.0, "p99_ms": 20.0},
    "checked": "",
}


def test_podyards_result_is_read() -> None:
    outcome = podyard_run.read(msgspec.json.encode(SAID))
    found = outcome.figures
    assert (found.pods, found.pods_per_second, found.cpu_us) == (30_000, 4500.0, 261.0)
    assert found.memory_mib == 400.0, "without the client"
    assert (found.attempt_mean_ms, found.attempt_p99_ms) == (2.0, 9.0)
    assert (found.reaction_p50_ms, found.reaction_p99_ms) == (5.0, 20.0)
    assert outcome.said["case"] == BASIC.full_name
    assert outcome.notes == []
    notes = podyard_run.read(msgspec.json.encode({**SAID, "seconds": 2.0, "checked": "a gap"})).notes
    assert notes == [
        "the measured part lasted less than 5 s",
        "of what was left: a gap",
    ]
    streams = {**STREAMS, "violations": ["commit 2 binds p"], "violated": 1}
    assert podyard_run.read(msgspec.json.encode({**SAID, "streams": streams})).notes == [
        "the checker found 1 faults: commit 2 binds p"
    ]


@pytest.mark.parametrize("content", [b"", b"{}", msgspec.json.encode({**SAID, "pods_bound": 0})])
def test_what_is_no_result_of_podyard_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"not what is expected|bound no pods"):
        podyard_run.read(content)


def test_podyard_runs_the_same_file() -> None:
    words = podyard_run.command(Path("/w/misc/basic.yaml"), BASIC, PODYARD, 250.0)
    assert words[3:] == ["bench", "scheduler-perf", "/w/misc/basic.yaml", "--case", BASIC.full_name, "-o", "json"]
    assert "--equal-churn" in podyard_run.command(Path("c.yaml"), CHURNING, PODYARD, 250.0)
    paced = podyard_run.command(Path("c.yaml"), BASIC, AS_MANY, 250.0)
    assert paced[paced.index("--pace") + 1] == "250.0"
