import msgspec
import pytest

from podyard.runtime.settings import SettingsError, load_settings


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    initial_s: float = 1.0
    limits: dict[str, int] = {}


class Own(msgspec.Struct, frozen=True, kw_only=True):
    workers: int = 4
    names: tuple[str, ...] = ()
    eager: bool = False
    backoff: Backoff = Backoff()


@pytest.fixture
def options(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "options.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_defaults_when_nothing_is_set():
    common, own = load_settings(Own, "queue")
    assert common.nats.servers == ("nats://127.0.0.1:4222",)
    assert own == Own()


def test_each_source_beats_the_one_before(options):
    file = options("log: {level: debug}\nhttp: {port: 1}\nqueue: {workers: 5, names: [a], backoff: {initial_s: 2}}")
    common, own = load_settings(
        Own,
        "queue",
        config_file=file,
        environment={"PODYARD_QUEUE_WORKERS": "6", "PODYARD_HTTP_PORT": "2", "PODYARD_QUEUE_NAMES": "b, c"},
        flags={"http.port": 3, "queue.eager": "true", "queue.backoff.limits": "{x: 1}"},
    )
    assert (common.log.level, common.http.port) == ("debug", 3)
    assert own == Own(workers=6, names=("b", "c"), eager=True, backoff=Backoff(initial_s=2.0, limits={"x": 1}))


def test_an_instance_is_made_up_and_unique_unless_named():
    names = {load_settings(Own, "queue")[0].instance for _ in range(3)}
    assert len(names) == 3
    assert load_settings(Own, "queue", environment={"PODYARD_INSTANCE": "queue-0"})[0].instance == "queue-0"


def test_sections_of_other_services_are_left_alone(options):
    file = options("scheduler: {whatever: 1}\nqueue: {workers: 2}")
    assert load_settings(Own, "queue", config_file=file)[1].workers == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("queue: {worker: 1}", "no setting is called queue.worker; did you mean workers?"),
        ("logg: {}", "no setting is called logg; did you mean log?"),
        ("queue: {workers: many}", "queue.workers: Expected `int`, got `str`"),
        ("queue: [1]", "queue: expected a mapping, got list"),
        ("log: {level: loud}", "log.level: Invalid enum value 'loud'"),
        ("a: [", "not YAML"),
        ("http: {port: 70000}", "http.port: Expected `int` <= 65535"),
    ],
)
def test_a_wrong_file_is_told_with_its_path(options, text, told):
    file = options(text)
    with pytest.raises(SettingsError) as raised:
        load_settings(Own, "queue", config_file=file)
    assert told in str(raised.value)
    assert file in str(raised.value)


def test_a_wrong_variable_is_named():
    with pytest.raises(SettingsError) as raised:
        load_settings(Own, "queue", environment={"PODYARD_HTTP_PORT": "web"})
    assert raised.value.problems[0].startswith("PODYARD_HTTP_PORT='web': Expected `int`")


def test_all_faults_are_told_at_once(options):
    file = options("queue: {worker: 1}\nlog: {level: loud}")
    with pytest.raises(SettingsError) as raised:
        load_settings(Own, "queue", config_file=file, flags={"nats.server": "x"})
    assert len(raised.value.problems) >= 2


def test_a_missing_file_is_told():
    with pytest.raises(SettingsError, match=r"options file /nowhere/x\.yaml: No such file"):
        load_settings(Own, "queue", config_file="/nowhere/x.yaml")
