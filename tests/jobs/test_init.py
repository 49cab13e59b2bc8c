"""``init``: what it asks and writes is what the other commands read."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from jobs.cli import main
from jobs.config.choices import WEBHOOK_SERVICES
from jobs.config.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jobs.commands.init.is_terminal", lambda _: False)
    return tmp_path


def answer(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """A terminal on which these lines are typed; what it is asked."""
    asked: list[str] = []
    lines = iter(answers)

    def type_line(question: str) -> str:
        asked.append(question)
        return next(lines)

    monkeypatch.setattr("jobs.commands.init.is_terminal", lambda _: True)
    monkeypatch.setattr("builtins.input", type_line)
    return asked


def test_five_questions_are_asked_on_a_terminal(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = answer(monkeypatch, "10.0.0.1;10.0.0.2", "", "dingtalk", "", "zh")
    assert main(["init"]) == 0
    assert len(asked) == 5
    found = load_settings("conf/audit.toml")
    assert found.paths.dumps == (f"{here}/out/dumps",)
    assert found.paths.reports == f"{here}/out/reports"
    assert found.alerts.service == "DINGTALK"
    assert found.language == "zh"
    assert found.alerts.webhook_file == f"{here}/conf/webhook"
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "wrote conf/audit.toml"
    assert said[2:] == [
        "next: rebalance-audit collect --namesrv '10.0.0.1:9876;10.0.0.2:9876' --dumps "
        f"{here}/out/dumps --every 60",
        f"next: rebalance-audit run --output {here}/out",
    ]


def test_a_path_is_distinguished_from_an_address(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "dumps").mkdir()
    answer(monkeypatch, "dumps", "s3://bucket/audit", "", "", "")
    assert main(["init"]) == 0
    found = load_settings("conf/audit.toml")
    assert found.paths.dumps == (f"{here}/dumps",)
    assert found.paths.reports == "s3://bucket/audit/reports"
    assert found.alerts == Settings().alerts


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected --namesrv or --dumps, or an answer on a terminal"),
        (["--dumps", "x", "--namesrv", "y"], "expected --namesrv or --dumps, came both"),
        (["--namesrv", "http://x"], "--namesrv: expected host:port of a nameserver"),
    ],
)
def test_without_a_source_nothing_is_written(
    arguments: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not any(here.iterdir())


def test_what_is_there_is_replaced_by_force_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "conf").mkdir()
    (here / "conf" / "crontab").write_text("mine\n")
    command = ["init", "--dumps", "dumps/", "--schedule", "cron"]
    assert main(command) == 2
    assert "conf/crontab: already there; --force replaces it" in capsys.readouterr().err
    # Nothing is half written.
    assert [path.name for path in (here / "conf").iterdir()] == ["crontab"]
    assert (here / "conf" / "crontab").read_text() == "mine\n"
    assert main([*command, "--force"]) == 0
    assert "rebalance-audit run" in (here / "conf" / "crontab").read_text()


def test_a_schedule_that_is_typed_is_written_and_another_word_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "", "", "weekly")
    assert main(["init", "--dumps", "dumps/"]) == 2
    assert "expected one of cron,dag,kubernetes,nothing, came 'weekly'" in capsys.readouterr().err
    answer(monkeypatch, "", "", "CRON", "")
    assert main(["init", "--dumps", "dumps/"]) == 0
    assert (here / "conf" / "crontab").exists()


@pytest.mark.parametrize("service", WEBHOOK_SERVICES)
def test_every_service_has_a_place_for_its_secret(service: str, here: Path) -> None:
    assert main(["init", "--dumps", "dumps/", "--messages", service]) == 0
    alerts = load_settings("conf/audit.toml").alerts
    files = (alerts.webhook_file, alerts.secret_file)
    expected = f"{here}/conf/secret" if service == "PAGERDUTY" else f"{here}/conf/webhook"
    assert [each for each in files if each] == [expected]


def test_a_crontab_has_the_places_of_the_answers_and_ends_its_lines(here: Path) -> None:
    options = ["--namesrv", "10.0.0.1", "--output", "/data/audit", "--messages", "SLACK"]
    assert main(["init", *options, "--schedule", "cron"]) == 0
    text = (here / "conf" / "crontab").read_text()
    assert dict(re.findall(r'^([A-Z]+)="(.*)"$', text.partition("PATH=")[2], re.M)) == {
        "SETTINGS": f"{here}/conf/audit.toml",
        "OUTPUT": "/data/audit",
        "DUMPS": "/data/audit/dumps",
        "NAMESRV": "10.0.0.1:9876",
    }
    assert "--webhook" in text
    assert text.endswith("\n")


def test_without_messages_none_is_posted(here: Path) -> None:
    for schedule in ("cron", "kubernetes"):
        assert main(["init", "--dumps", "d/", "--schedule", schedule, "--force"]) == 0
    for name in ("crontab", "nightly.yaml"):
        assert "--webhook" not in (here / "conf" / name).read_text()


def next_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr().out.splitlines()
    return [line.removeprefix("next: ") for line in lines if line.startswith("next: ")]


def test_every_nameserver_that_is_given_is_kept(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--namesrv", "10.0.0.1", "--namesrv", "10.0.0.2:9877;10.0.0.3"]
    assert main(["init", *options, "--schedule", "cron"]) == 0
    every = "10.0.0.1:9876;10.0.0.2:9877;10.0.0.3:9876"
    assert f'NAMESRV="{every}"' in (here / "conf" / "crontab").read_text()
    assert f"--namesrv '{every}'" in next_lines(capsys)[0]


def test_dumps_that_are_there_are_put_into_folders_of_days_for_cron(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each night reads the folder of the day before, as a collector makes it."""
    assert main(["init", "--dumps", "dumps", "--schedule", "cron"]) == 0
    said = f"next: put the dumps of each day (UTC) into {here}/dumps/YYYY-MM-DD/: cron reads that"
    assert said in capsys.readouterr().out.splitlines()
    assert main(["init", "--namesrv", "10.0.0.1", "--schedule", "cron", "--force"]) == 0
    assert "YYYY-MM-DD" not in capsys.readouterr().out


def test_with_cron_the_collector_is_started_now(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--namesrv", "10.0.0.1", "--schedule", "cron"]) == 0
    assert next_lines(capsys)[0].startswith(
        f"nohup rebalance-audit collect --namesrv 10.0.0.1:9876 --dumps {here}/out/dumps "
        "--every 60 --quiet &"
    )


@pytest.mark.parametrize("schedule", ["dag", "kubernetes"])
@pytest.mark.parametrize("service", ["SLACK", "PAGERDUTY"])
def test_settings_name_no_secret_file_that_is_on_this_machine_alone(
    service: str, schedule: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--dumps", "dumps/", "--messages", service, "--schedule", schedule]
    assert main(["init", *options]) == 0
    alerts = load_settings("conf/audit.toml").alerts
    assert (alerts.service, alerts.webhook_file, alerts.secret_file) == (service, None, None)
    variable = f"REBALANCE_AUDIT_{'SECRET' if service == 'PAGERDUTY' else 'WEBHOOK'}"
    said = next_lines(capsys)
    assert any(variable in line for line in said)
    assert not any(str(here / "conf" / "webhook") in line for line in said)


def test_a_cron_job_is_the_one_of_the_docs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dumps", "dumps/", "--messages", "SLACK", "--schedule", "kubernetes"]
    assert main(["init", *options]) == 0
    written = (here / "conf" / "nightly.yaml").read_text()
    assert written == (ROOT / "docs/deploy/kubernetes/nightly.yaml").read_text()
    assert yaml.safe_load(written)["kind"] == "CronJob"
    # Dumps that are there need no collector.
    assert not (here / "conf" / "collect.yaml").exists()
    image, claims, secret, configmap, apply = next_lines(capsys)
    assert "registry.example.org" in image
    assert {"rebalance-audit", "rebalance-audit-dumps"} == set(
        re.findall(r"claimName: (.*)", written)
    )
    assert "rebalance-audit, and rebalance-audit-dumps" in claims
    (of_secret,) = re.findall(r"secretRef:\n +name: (.*)", written)
    assert secret == (
        f"kubectl create secret generic {of_secret} --from-literal=REBALANCE_AUDIT_WEBHOOK=..."
    )
    # The names of the files are those that the CronJob mounts.
    assert f"# {configmap}\n" in written
    assert apply == "kubectl apply --filename conf/nightly.yaml"


def test_on_kubernetes_the_collector_is_a_deployment_with_the_nameservers(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--namesrv", "10.0.0.1", "--namesrv", "[::1]:9877", "--schedule", "kubernetes"]
    assert main(["init", *options, "--settings", "k/mine.toml"]) == 0
    deployment = yaml.safe_load((here / "k" / "collect.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        "collect",
        "--namesrv=10.0.0.1:9876",
        "--namesrv=[::1]:9877",
        "--dumps=/dumps",
        "--every=60",
    ]
    said = next_lines(capsys)
    assert "k/nightly.yaml and k/collect.yaml" in said[0]
    assert said[-2].endswith("--from-file=audit.toml=k/mine.toml --from-file=k/known_issues.toml")
    assert said[-1] == "kubectl apply --filename k/nightly.yaml --filename k/collect.yaml"
    assert not any(line.startswith("rebalance-audit ") for line in said)


def test_for_a_dag_its_variable_is_printed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--namesrv", "10.0.0.1", "--messages", "SLACK", "--schedule", "dag"]
    assert main(["init", *options]) == 0
    said = next_lines(capsys)
    (line,) = [line for line in said if line.startswith("airflow variables set ")]
    name, text = shlex.split(line, comments=True)[3:]
    values = json.loads(text)
    dag = (ROOT / "jobs/airflow/rebalance_audit.py").read_text()
    assert f"Variable `{name}`" in dag
    (example,) = re.findall(r"^ {8}(\{.*?\})$", dag, re.M | re.S)
    assert values.keys() <= json.loads(example).keys()
    assert values["dumps"] == f"{here}/out/dumps"
    assert values["settings"] == f"{here}/conf/audit.toml"
    assert values["alert"] == "post"
    assert not any("rebalance-audit collect" in line for line in said)
    assert any(f"dumps folder of the variable {name}" in line for line in said)


def test_a_dag_is_the_one_that_ships(here: Path) -> None:
    assert main(["init", "--dumps", "dumps/", "--schedule", "dag"]) == 0
    shipped = (ROOT / "jobs/airflow/rebalance_audit.py").read_text()
    assert (here / "conf" / "rebalance_audit.py").read_text() == shipped
