"""The history of measurements: what an entry holds, how the file is kept, what can be compared, and how it is
told."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from rich.console import Console

from podyard.bench import comparing, counted, history, machine, performance
from podyard.bench.basic import BasicResult
from podyard.bench.commands import app as bench
from podyard.bench.comparing import Change
from podyard.bench.cycles import CycleResult, KindCost
from podyard.bench.keeping import Keeping
from podyard.bench.machine import Commit, Machine
from podyard.bench.performance import Cycles, Entry, Events, Throughput
from podyard.bench.render import history as shown_history
from podyard.cli import app
from podyard.cli.errors import CliError, InputError

HERE = Machine(cores=2, cpu="Xeon", python="3.11.7", nats_server="2.15.1")
THERE = Machine(cores=8, cpu="EPYC", python="3.11.7", nats_server="2.15.1")
COUNTS = {"stored": 2.01, "objects.queue": 1.0, "objects.binder": 1.0, "calls.plain": 168.0}


def entry(commit: str = "abc1234", rate: float = 3000.0, place: Machine = HERE, **other: Any) -> Entry:
    made = Entry(
        commit=commit,
        dirty=False,
        date="2026-11-22T12:00:00Z",
        machine=place,
        throughput=Throughput(
            nodes=5000,
            pods=10_000,
            runs=3,
            pods_per_second=rate,
            cpu_us_per_pod={"scheduler": 177.0, "nats-server": 102.0},
            pods_per_commit=167.0,
            stored_per_pod=2.01,
            to_server_per_pod=2.1,
            from_server_per_pod=4.2,
        ),
        cycle=Cycles(nodes=5000, first_us={"plain": 848.0}, seen_us={"plain": 51.0}),
        events=Events(parked=10_000, none_us=29.0, one_us=63.0, all_ms=170.0, storm_pop_p99_ms=11.5),
        counts=COUNTS,
    )
    return msgspec.structs.replace(made, **other)


def run(rate: float, scheduler_us: float) -> BasicResult:
    return BasicResult(
        nodes=5,
        pods=10,
        pods_bound=10,
        seconds=1.0,
        pods_per_second_average=rate,
        seconds_to_create=0.5,
        commits=2,
        pods_per_commit=5.0,
        cpu_seconds={},
        cpu_us_per_pod={"scheduler": scheduler_us},
        memory_mib={},
        messages_stored_per_pod=2.0,
        messages_to_server_per_pod=2.1,
        messages_from_server_per_pod=4.2,
        bound_in_second=(10,),
    )


RUNS = [run(100.0, 30.0), run(300.0, 10.0), run(200.0, 90.0)]
CYCLES = CycleResult(nodes=5, pods=10, kinds={"plain": KindCost(first_us=800.0, seen_us=50.0, assume_us=9.0)}, curve=())
CORE: Any = SimpleNamespace(parked=100, none_us=29.0, one_us=63.0, all_ms=170.0)
STORM: Any = SimpleNamespace(storm_pop_p99_ms=11.5)


class TestEntry:
    def test_each_figure_is_its_own_median_over_the_runs(self):
        made = performance.entry(
            Commit("abc1234", dirty=True), HERE, 1_800_000_000.0, RUNS, CYCLES, CORE, STORM, COUNTS
        )
        assert (made.label, made.date, made.machine) == ("abc1234*", "2027-01-15T08:00:00Z", HERE)
        assert (made.throughput.runs, made.throughput.pods_per_second) == (3, 200.0)
        assert made.throughput.cpu_us_per_pod == {"scheduler": 30.0}
        assert (made.cycle.first_us, made.cycle.seen_us) == ({"plain": 800.0}, {"plain": 50.0})
        assert made.events == Events(parked=100, none_us=29.0, one_us=63.0, all_ms=170.0, storm_pop_p99_ms=11.5)
        assert made.counts == COUNTS

    def test_an_unknown_commit_has_a_label_too(self):
        assert entry(commit="").label == "?"


class TestFile:
    def test_one_entry_more_is_one_line_more_and_no_other_changes(self, tmp_path: Path):
        file = tmp_path / "performance.json"
        file.write_text("[]\n")
        written = []
        for commit in ("a", "b", "c"):
            history.append(file, entry(commit))
            written.append(file.read_text().splitlines())
        assert [len(lines) for lines in written] == [3, 4, 5]
        assert written[1][:2] == written[0][:2]
        assert written[2][:3] == written[1][:3]
        assert [one.commit for one in history.read(file)] == ["a", "b", "c"]
        assert list(tmp_path.iterdir()) == [file]

    def test_a_file_that_is_not_there_is_made_and_one_that_is_keeps_its_mode(self, tmp_path: Path):
        file = tmp_path / "new.json"
        history.append(file, entry())
        assert file.stat().st_mode & 0o777 == 0o644
        file.chmod(0o600)
        history.append(file, entry())
        assert file.stat().st_mode & 0o777 == 0o600
        assert history.read(file) == [entry(), entry()]

    def test_what_a_later_version_wrote_is_read_and_kept(self, tmp_path: Path):
        file = tmp_path / "performance.json"
        later = msgspec.to_builtins(entry()) | {"weather": "fair"}
        file.write_bytes(msgspec.json.encode([later]))
        history.append(file, entry("b"))
        assert [one.commit for one in history.read(file)] == ["abc1234", "b"]
        assert '"weather": "fair"' in file.read_text()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ("", "no JSON array of measurements"),
            ("[{]", "no JSON array of measurements"),
            ('{"commit": "a"}', "no JSON array of measurements: Expected `array`"),
            ("[\n{}\n]", "entry 1: Object missing required field `commit`"),
        ],
    )
    def test_a_damaged_file_is_named_with_what_to_do_and_stays_as_it_is(self, tmp_path: Path, content: str, words: str):
        file = tmp_path / "performance.json"
        file.write_text(content)
        for use in (lambda: history.read(file), lambda: history.check(file), lambda: history.append(file, entry())):
            with pytest.raises(CliError) as caught:
                use()
            assert caught.value.message.startswith(f"{file}: {words}")
            assert f"git checkout -- {file}" in caught.value.advice
        assert file.read_text() == content

    def test_a_write_that_fails_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        file = tmp_path / "performance.json"
        history.append(file, entry("a"))
        before = file.read_bytes()

        def full(self: Path, target: Path) -> Path:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(CliError, match="cannot be written: No space left on device"):
            history.append(file, entry("b"))
        assert file.read_bytes() == before
        assert list(tmp_path.iterdir()) == [file]

    def test_where_nothing_can_be_written_is_said_before_the_measuring(self, tmp_path: Path):
        with pytest.raises(InputError, match="nowhere is no directory"):
            history.check(tmp_path / "nowhere" / "performance.json")
        history.check(tmp_path / "new.json")

    def test_the_checkouts_file_is_found_from_the_code_in_it(self, tmp_path: Path):
        code = tmp_path / "services" / "podyard" / "cli" / "history.py"
        (tmp_path / "docs").mkdir()
        code.parent.mkdir(parents=True)
        assert history.find(code) is None
        (tmp_path / "docs" / "performance.json").write_text("[]")
        assert history.find(code) == tmp_path / "docs" / "performance.json"
        assert history.find(tmp_path.parent / "site-packages" / "podyard" / "history.py") is None

    def test_the_history_of_this_checkout_can_be_read(self):
        found = history.find()
        assert found is not None
        history.read(found)


class TestCommit:
    def test_the_hash_and_whether_other_files_than_the_history_changed(self, tmp_path: Path):
        git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
        kept, code = tmp_path / "performance.json", tmp_path / "code.py"
        for file in (kept, code):
            file.write_text("1")
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run([*git, *command], check=True)
        (tmp_path / "untracked").write_text("")
        found = machine.commit_of(tmp_path, besides=kept)
        assert len(found.hash) >= 7
        assert not found.dirty
        kept.write_text("2")
        assert not machine.commit_of(tmp_path, besides=kept).dirty
        code.write_text("2")
        assert machine.commit_of(tmp_path, besides=kept) == Commit(found.hash, dirty=True)

    def test_where_there_is_no_repository_it_is_not_known(self, tmp_path: Path):
        assert machine.commit_of(tmp_path, besides=tmp_path / "f") == Commit()

    def test_this_machine_is_described(self):
        found = machine.this_machine()
        assert found.cores >= 1
        assert found.cpu
        assert found.python == sys.version.split()[0]
        assert found.nats_server.startswith("2.")


class TestComparing:
    def test_machines_are_apart_the_last_used_last(self):
        found = comparing.by_hardware(
            [entry("a"), entry("b", place=THERE), entry("c", place=msgspec.structs.replace(HERE, python="3.12.1"))]
        )
        assert {hardware: [one.commit for one in of] for hardware, of in found.items()} == {
            "8 cores, EPYC": ["b"],
            "2 cores, Xeon": ["a", "c"],
        }

    @pytest.mark.parametrize(
        ("now", "before", "wanted"),
        [
            (100.0, None, Change(0, "")),
            (104.0, 100.0, Change(0, "")),
            (112.0, 100.0, Change(-1, "+12%")),
            (88.0, 100.0, Change(1, "-12%")),
            (250.0, 100.0, Change(-1, "×2.5")),
            (200.0, 100.0, Change(-1, "×2")),
            (4200.0, 9.0, Change(-1, "×467")),
            (4.0, 0.0, Change(-1, "new")),
            (0.0, 0.0, Change(0, "")),
            (0.0, 1.0, Change(1, "-100%")),
        ],
    )
    def test_a_change_is_told_if_it_is_more_than_noise(self, now: float, before: float | None, wanted: Change):
        assert comparing.change(now, before, 0.05) == wanted

    def test_of_some_figures_more_is_better(self):
        assert comparing.change(3600.0, 3000.0, 0.05, more_is_better=True) == Change(1, "+20%")
        assert comparing.change(2400.0, 3000.0, 0.05, more_is_better=True) == Change(-1, "-20%")

    def test_small_changes_of_counts_have_a_decimal(self):
        assert comparing.change(2.02, 2.01, 0.002) == Change(-1, "+0.5%")


def told(entries: list[Entry], width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown_history.report(entries, "performance.json"))
    return captured.get()


class TestReport:
    def test_an_empty_history_says_how_to_begin(self):
        assert told([]).strip() == (
            "performance.json has no entries yet: make bench adds one for the commit that is \nchecked out"
        )

    def test_a_first_entry_has_nothing_to_be_compared_with(self):
        text = told([entry()])
        assert "2 cores, Xeon" in text
        assert "2026-11-22 abc1234  3,000 279       177  102" in text
        assert "abc1234, 2026-11-22, the first of this machine" in text
        assert "%" not in text.split("the first of this machine")[1]

    def test_what_changed_stands_beside_the_figure(self):
        counts = COUNTS | {"objects.queue": 2.0, "rows.binder": 4.0}
        text = told([entry("a"), entry("b", place=THERE), entry("c", rate=2000.0, counts=counts)])
        last = text.split("c, 2026-11-22, against a")[1]
        line = next(line for line in last.splitlines() if line.startswith("objects decoded"))
        assert line.split() == ["objects", "decoded", "1.000", "2.000", "×2"]
        assert "4.000 new" in last
        assert "b, 2026-11-22, the first of this machine" in text
        assert "pods/s █▁" in text

    def test_counts_that_are_not_known_here_are_told_by_name(self):
        text = told([entry(counts=COUNTS | {"sneezes.queue": 3.0})])
        assert "sneezes" in text

    def test_an_entry_without_counts_is_no_regress(self):
        text = told([entry("a", counts={}), entry("b")])
        assert "new" not in text
        text = told([entry("a"), entry("b", counts={})])
        assert "COUNTED PER POD" not in text

    def test_every_line_fits_80_columns(self):
        processes = {
            "scheduler": 1177.0,
            "binder": 117.0,
            "nats-server": 102.0,
            "queue": 92.0,
            "api": 56.0,
            "client": 7.0,
        }
        throughput = msgspec.structs.replace(entry().throughput, cpu_us_per_pod=processes)
        kinds = ("plain", "selector", "spread", "anti-affinity", "affinity")
        cycle = Cycles(nodes=5000, first_us=dict.fromkeys(kinds, 1029.0), seen_us=dict.fromkeys(kinds, 102.0))
        again = {f"rows_again.{kind}": 5.0 for kind in kinds}
        before = entry("abcdef123", throughput=throughput, cycle=cycle, counts=COUNTS | again, dirty=True)
        slower = Cycles(nodes=5000, first_us=dict.fromkeys(kinds, 1229.0), seen_us=dict.fromkeys(kinds, 122.0))
        more = {name: value * 830 for name, value in again.items()}
        after = msgspec.structs.replace(before, cycle=slower, counts=COUNTS | more)
        text = told([before, after])
        assert "…" not in text
        assert "4,150 ×830" in text

    def test_only_the_last_entries_are_shown(self):
        text = told([entry(f"c{number}") for number in range(25)])
        assert "5 earlier entries are not shown" in text
        assert "c4 " not in text
        assert "c5 " in text

    def test_versions_are_told_where_they_change(self):
        newer = msgspec.structs.replace(HERE, python="3.12.1")
        text = told([entry("a"), entry("b"), entry("c", place=newer)])
        assert text.count("nats-server 2.15.1, from") == 2
        assert "Python 3.12.1, nats-server 2.15.1, from c on" in text

    def test_a_sparkline_of_equal_figures_is_level(self):
        assert shown_history.sparkline([5.0, 5.0]) == "▄▄"
        assert shown_history.sparkline([1.0, 2.0, 8.0]) == "▁▂█"


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        found = tmp_path / "performance.json"
        history.append(found, entry("a"))
        history.append(found, entry("b", place=THERE, counts={}))
        return found

    def test_tables_and_json(self, file: Path, capsys: pytest.CaptureFixture[str]):
        assert app.run(["bench", "history", str(file)]) == 0
        assert "8 cores, EPYC" in capsys.readouterr().out
        assert app.run(["bench", "history", str(file), "-o", "json"]) == 0
        assert msgspec.json.decode(capsys.readouterr().out, type=list[Entry]) == history.read(file)

    @pytest.mark.parametrize(("name", "begins"), [("p.svg", b"<?xml"), ("p.png", b"\x89PNG")])
    def test_a_picture(self, file: Path, name: str, begins: bytes, capsys: pytest.CaptureFixture[str]):
        picture = file.with_name(name)
        assert app.run(["bench", "history", str(file), "--plot", str(picture)]) == 0
        assert picture.read_bytes().startswith(begins)
        assert capsys.readouterr().out == f"{picture}: 2 entries of {file}\n"

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["{}/none.json"], 2, "none.json: No such file or directory"),
            (["{}/performance.json", "--plot", "p.pdf"], 2, "a picture is drawn as .svg or .png"),
            (["{}/empty.json", "--plot", "p.svg"], 2, "has no entries: there is nothing to draw"),
            (["{}/performance.json", "--plot", "{}/none/p.svg"], 1, "p.svg: cannot be written"),
        ],
    )
    def test_what_cannot_be_done_is_said(
        self, file: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
    ):
        file.with_name("empty.json").write_text("[]")
        assert app.run(["bench", "history", *(text.format(file.parent) for text in arguments)]) == code
        assert words in capsys.readouterr().err

    def test_without_matplotlib_it_says_what_to_install(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
        monkeypatch.delitem(sys.modules, "podyard.bench.render.history_picture", raising=False)
        monkeypatch.delattr("podyard.bench.render.history_picture", raising=False)
        assert app.run(["bench", "history", str(file), "--plot", "p.svg"]) == 1
        assert "pip install matplotlib" in capsys.readouterr().err

    def test_outside_a_checkout_the_file_is_to_be_named(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.setattr(history, "find", lambda: None)
        assert app.run(["bench", "history"]) == 2
        assert "podyard bench history FILE" in capsys.readouterr().err


class TestKeeping:
    def test_an_entry_is_added_with_the_counts_it_was_given(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        counts, file = tmp_path / "counts.json", tmp_path / "performance.json"
        counts.write_text('{"stored": 2.01}')
        Keeping(str(file), str(counts)).keep(RUNS, CYCLES, CORE, STORM)
        (made,) = history.read(file)
        assert made.counts == {"stored": 2.01}
        assert made.throughput.pods_per_second == 200.0
        assert f"{file}: {made.label} added" in capsys.readouterr().err

    def test_outside_a_checkout_nothing_is_kept_and_how_it_could_be_is_said(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        monkeypatch.setattr(history, "find", lambda: None)
        keeping = Keeping("", "")
        assert "--history FILE keeps it in FILE" in capsys.readouterr().err
        keeping.keep(RUNS, CYCLES, CORE, STORM)

    def test_an_entry_that_cannot_be_written_after_all_is_said(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        file = tmp_path / "performance.json"
        keeping = Keeping(str(file), "")
        file.write_text("damaged meanwhile")
        with pytest.raises(CliError, match="no JSON array"):
            keeping.keep(RUNS, CYCLES, CORE, STORM)
        said = capsys.readouterr().err
        assert msgspec.json.decode(said.partition(": ")[2], type=Entry).throughput.pods_per_second == 200.0

    @pytest.mark.parametrize(
        ("content", "words"), [(None, "No such file"), (b"", "no counts"), (b'{"stored": "many"}', "no counts")]
    )
    def test_counts_that_are_none_are_told_before_the_measuring(
        self, tmp_path: Path, content: bytes | None, words: str
    ):
        file = tmp_path / "counts.json"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(InputError, match=words):
            counted.read(str(file))

    def test_all_benchmarks_are_run_and_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ):
        left = list(RUNS)
        monkeypatch.setattr(bench, "_measure", lambda nodes, pods, data, services: left.pop())
        monkeypatch.setattr(bench, "_cycles", lambda nodes, curve: CYCLES)
        monkeypatch.setattr(bench, "_events", lambda pods, updates: (CORE, STORM))
        monkeypatch.setattr(bench, "_event_figures", lambda core, storm: {})
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(b'{"stored": 2.01}')))
        file = tmp_path / "performance.json"
        assert app.run(["bench", "all", "--history", str(file), "--counts", "-", "-o", "json"]) == 0
        assert msgspec.json.decode(capsys.readouterr().out)["basic"]["pods_per_second_average"] == 200.0
        assert [(one.throughput.runs, one.counts) for one in history.read(file)] == [(3, {"stored": 2.01})]
