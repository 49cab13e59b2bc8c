"""``init``: what it asks and writes is what the other commands read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from jobs.config.choices import WEBHOOK_SERVICES
from jobs.config.settings import Alerts, Settings, load_settings
from tests.support.command_line import CommandLine

ROOT = Path(__file__).parent.parent.parent


class Init:
    """``init`` in a folder of its own: what it asks, says and writes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr("jobs.commands.init.is_terminal", lambda _: False)
        self.folder, self.conf, self.cli = folder, folder / "conf", cli
        self._monkeypatch = monkeypatch

    def __call__(self, options: str = "", code: int = 0) -> list[str]:
        """The lines that say what is next."""
        lines = self.cli("init", *options.split(), code=code).splitlines()
        return [line.removeprefix("next: ") for line in lines if line.startswith("next: ")]

    def answer(self, *answers: str) -> list[str]:
        """A terminal on which these lines are typed; what it is asked."""
        asked: list[str] = []
        lines = iter(answers)

        def type_line(question: str) -> str:
            asked.append(question)
            return next(lines)

        self._monkeypatch.setattr("jobs.commands.init.is_terminal", lambda _: True)
        self._monkeypatch.setattr("builtins.input", type_line)
        return asked

    def written(self, name: str) -> str:
        return (self.conf / name).read_text()

    @property
    def alerts(self) -> Alerts:
        return load_settings("conf/audit.toml").alerts


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> Init:
    return Init(tmp_path, monkeypatch, cli)


def test_five_questions_are_asked_on_a_terminal(init: Init) -> None:
    asked = init.answer("10.0.0.1;10.0.0.2", "", "dingtalk", "", "zh")
    init()
    assert len(asked) == 5
    found = load_settings("conf/audit.toml")
    assert found.paths.dumps == (f"{init.folder}/out/dumps",)
    assert found.paths.reports == f"{init.folder}/out/reports"
    assert found.language == "zh"
    assert (found.alerts.service, found.alerts.webhook_file) == ("DINGTALK", f"{init.conf}/webhook")
    said = init.cli.out.splitlines()
    assert said[0] == "wrote conf/audit.toml"
    assert said[2:] == [
        "next: rebalance-audit collect --namesrv '10.0.0.1:9876;10.0.0.2:9876' --dumps "
        f"{init.folder}/out/dumps --every 60",
        f"next: rebalance-audit run --output {init.folder}/out",
    ]


def test_a_path_is_distinguished_from_an_address(init: Init) -> None:
    (init.folder / "dumps").mkdir()
    init.answer("dumps", "s3://bucket/audit", "", "", "")
    init()
    found = load_settings("conf/audit.toml")
    assert found.paths.dumps == (f"{init.folder}/dumps",)
    assert found.paths.reports == "s3://bucket/audit/reports"
    assert found.alerts == Settings().alerts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "expected --namesrv or --dumps, or an answer on a terminal"),
        ("--dumps x --namesrv y", "expected --namesrv or --dumps, came both"),
        ("--namesrv http://x", "--namesrv: expected host:port of a nameserver"),
    ],
)
def test_without_a_source_nothing_is_written(options: str, said: str, init: Init) -> None:
    init(options, code=2)
    assert said in init.cli.err
    assert not any(init.folder.iterdir())


def test_what_is_there_is_replaced_by_force_alone(init: Init) -> None:
    init.conf.mkdir()
    (init.conf / "crontab").write_text("mine\n")
    init("--dumps dumps/ --schedule cron", code=2)
    assert "conf/crontab: already there; --force replaces it" in init.cli.err
    # Nothing is half written.
    assert [path.name for path in init.conf.iterdir()] == ["crontab"]
    assert init.written("crontab") == "mine\n"
    init("--dumps dumps/ --schedule cron --force")
    assert "rebalance-audit run" in init.written("crontab")


def test_a_wrong_answer_is_asked_for_again_and_the_others_are_kept(init: Init) -> None:
    init.folder.joinpath("notes.txt").touch()
    asked = init.answer(
        *("http://10.0.0.1", "10.0.0.1"),
        *("notes.txt", "lake"),
        *("pager", "SLACK"),
        "CRON",
        *("french", "zh"),
    )
    init()
    assert len(asked) == 9
    for said in (
        "--namesrv: expected host:port of a nameserver, came 'http://10.0.0.1'",
        "expected a folder, came the file 'notes.txt'",
        "expected one of SLACK,",
        "expected one of en,zh, came 'french'",
    ):
        assert said in init.cli.err
    found = load_settings("conf/audit.toml")
    assert (found.paths.reports, found.language) == (f"{init.folder}/lake/reports", "zh")
    assert init.alerts.service == "SLACK"
    assert "10.0.0.1:9876" in init.written("crontab")


def test_an_input_that_ends_is_not_asked_for_ever(init: Init) -> None:
    init.answer("")
    init(code=2)
    assert "expected --namesrv or --dumps, or an answer on a terminal" in init.cli.err


def test_settings_that_are_there_are_told_before_anything_is_asked(init: Init) -> None:
    init("--dumps dumps/")
    asked = init.answer()
    init(code=2)
    assert (asked, "conf/audit.toml: already there" in init.cli.err) == ([], True)


@pytest.mark.parametrize("service", WEBHOOK_SERVICES)
def test_every_service_has_a_place_for_its_secret(service: str, init: Init) -> None:
    init(f"--dumps dumps/ --messages {service}")
    files = (init.alerts.webhook_file, init.alerts.secret_file)
    name = "secret" if service == "PAGERDUTY" else "webhook"
    assert [each for each in files if each] == [f"{init.conf}/{name}"]


def test_a_crontab_has_the_places_of_the_answers_and_ends_its_lines(init: Init) -> None:
    init("--namesrv 10.0.0.1 --output /data/audit --messages SLACK --schedule cron")
    text = init.written("crontab")
    assert dict(re.findall(r'^([A-Z]+)="(.*)"$', text.partition("PATH=")[2], re.M)) == {
        "SETTINGS": f"{init.conf}/audit.toml",
        "OUTPUT": "/data/audit",
        "DUMPS": "/data/audit/dumps",
        "NAMESRV": "10.0.0.1:9876",
    }
    assert "--webhook" in text
    assert text.endswith("\n")


def test_without_messages_none_is_posted(init: Init) -> None:
    for schedule, name in (("cron", "crontab"), ("kubernetes", "nightly.yaml")):
        init(f"--dumps d/ --schedule {schedule} --force")
        assert "--webhook" not in init.written(name)


def test_every_nameserver_that_is_given_is_kept(init: Init) -> None:
    said = init("--namesrv 10.0.0.1 --namesrv 10.0.0.2:9877;10.0.0.3 --schedule cron")
    every = "10.0.0.1:9876;10.0.0.2:9877;10.0.0.3:9876"
    assert f'NAMESRV="{every}"' in init.written("crontab")
    assert f"--namesrv '{every}'" in said[0]


def test_dumps_that_are_there_are_put_into_folders_of_days_for_cron(init: Init) -> None:
    """Each night reads the folder of the day before, as a collector makes it."""
    said = f"put the dumps of each day (UTC) into {init.folder}/dumps/YYYY-MM-DD/: cron reads that"
    assert said in init("--dumps dumps --schedule cron")
    init("--namesrv 10.0.0.1 --schedule cron --force")
    assert "YYYY-MM-DD" not in init.cli.out


def test_with_cron_the_collector_is_started_now(init: Init) -> None:
    assert init("--namesrv 10.0.0.1 --schedule cron")[0].startswith(
        "nohup rebalance-audit collect --namesrv 10.0.0.1:9876 --dumps "
        f"{init.folder}/out/dumps --every 60 --quiet &"
    )


@pytest.mark.parametrize("schedule", ["dag", "kubernetes"])
@pytest.mark.parametrize("service", ["SLACK", "PAGERDUTY"])
def test_settings_name_no_secret_file_that_is_on_this_machine_alone(
    service: str, schedule: str, init: Init
) -> None:
    said = init(f"--dumps dumps/ --messages {service} --schedule {schedule}")
    alerts = init.alerts
    assert (alerts.service, alerts.webhook_file, alerts.secret_file) == (service, None, None)
    variable = f"REBALANCE_AUDIT_{'SECRET' if service == 'PAGERDUTY' else 'WEBHOOK'}"
    assert any(variable in line for line in said)
    assert not any(str(init.conf / "webhook") in line for line in said)


def test_a_cron_job_is_the_one_of_the_docs(init: Init) -> None:
    image, claims, secret, configmap, apply = init(
        "--dumps dumps/ --messages SLACK --schedule kubernetes"
    )
    written = init.written("nightly.yaml")
    assert written == (ROOT / "docs/deploy/kubernetes/nightly.yaml").read_text()
    assert yaml.safe_load(written)["kind"] == "CronJob"
    # Dumps that are there need no collector.
    assert not (init.conf / "collect.yaml").exists()
    assert "registry.example.org" in image
    claimed = set(re.findall(r"claimName: (.*)", written))
    assert claimed == {"rebalance-audit", "rebalance-audit-dumps"}
    assert "rebalance-audit, and rebalance-audit-dumps" in claims
    (of_secret,) = re.findall(r"secretRef:\n +name: (.*)", written)
    assert secret == (
        f"kubectl create secret generic {of_secret} --from-literal=REBALANCE_AUDIT_WEBHOOK=..."
    )
    # The names of the files are those that the CronJob mounts.
    assert f"# {configmap}\n" in written
    assert apply == "kubectl apply --filename conf/nightly.yaml"


def test_on_kubernetes_the_collector_is_a_deployment_with_the_nameservers(init: Init) -> None:
    options = "--namesrv 10.0.0.1 --namesrv [::1]:9877 --schedule kubernetes"
    said = init(f"{options} --settings k/mine.toml")
    deployment = yaml.safe_load((init.folder / "k" / "collect.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    servers = "--namesrv=10.0.0.1:9876 --namesrv=[::1]:9877"
    assert container["args"] == f"collect {servers} --dumps=/dumps --every=60".split()
    assert "k/nightly.yaml and k/collect.yaml" in said[0]
    assert said[-2].endswith("--from-file=audit.toml=k/mine.toml --from-file=k/known_issues.toml")
    assert said[-1] == "kubectl apply --filename k/nightly.yaml --filename k/collect.yaml"
    assert not any(line.startswith("rebalance-audit ") for line in said)


def test_a_dag_has_the_folders_and_is_else_the_one_of_the_docs(init: Init) -> None:
    said = init("--namesrv 10.0.0.1 --messages SLACK --schedule dag")
    written = init.written("nightly_audit.py")
    given: dict[str, str] = {}
    exec(written.partition("\nrebalance_audit_dag(")[0].partition("_dag\n")[2], given)  # noqa: S102
    assert {name: given[name] for name in ("DUMPS", "OUTPUT", "SETTINGS", "ALERT")} == {
        "DUMPS": f"{init.folder}/out/dumps",
        "OUTPUT": f"{init.folder}/out",
        "SETTINGS": f"{init.conf}/audit.toml",
        "ALERT": "post",
    }
    shipped = (ROOT / "docs" / "deploy" / "nightly_audit.py").read_text()
    assert (
        written.partition("rebalance_audit_dag(")[2] == shipped.partition("rebalance_audit_dag(")[2]
    )
    assert any("pip install --no-deps" in line for line in said)
    assert any(f"writes into {init.folder}/out/dumps" in line for line in said)
    assert not any("rebalance-audit collect" in line for line in said)
    init("--dumps dumps/ --schedule dag --force")
    assert 'ALERT = "print"' in init.written("nightly_audit.py")
