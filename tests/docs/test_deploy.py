"""What deploys the audit: images, manifests and units that say only what the commands accept."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from jobs import __version__
from jobs.console.arguments import build_parser

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "docs" / "deploy"
DOCKERFILES = sorted(path for path in DEPLOY.glob("Dockerfile*") if path.suffix != ".dockerignore")
MANIFESTS = [
    *sorted(DEPLOY.glob("kubernetes/*.yaml")),
    ROOT / "docs" / "collect" / "kubernetes.yaml",
]
UNITS = [*sorted(DEPLOY.glob("systemd/*.service")), *(ROOT / "docs" / "collect").glob("*.service")]


def stages(dockerfile: Path) -> list[str]:
    """The text of each stage, without comments, one instruction a line."""
    text = re.sub(r"^\s*#.*\n", "", dockerfile.read_text(), flags=re.M).replace("\\\n", " ")
    return re.split(r"^(?=FROM )", text, flags=re.M)[1:]


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_the_linter_has_nothing_to_say_of_a_dockerfile(dockerfile: Path) -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    subprocess.run([hadolint, dockerfile], check=True)


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_an_image_has_no_build_tools_no_root_and_only_what_is_locked(dockerfile: Path) -> None:
    *building, last = stages(dockerfile)
    assert building
    (user,) = re.findall(r"^USER (\d+)$", last, re.M)
    assert int(user) > 0
    assert "pip" not in last.replace("/opt/", "")
    for install in re.findall(r"pip install ([^&\n]*)", "".join(building)):
        assert "--require-hashes" in install or install.split()[0] == "--no-deps", install


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_what_an_image_copies_is_there_and_is_let_into_the_build(dockerfile: Path) -> None:
    ignore = dockerfile.with_name(f"{dockerfile.name}.dockerignore").read_text().splitlines()
    let_in = [line.removeprefix("!") for line in ignore if line.startswith("!")]
    copied = [
        source
        for words in re.findall(r"^COPY (?!--from)(.*)$", "".join(stages(dockerfile)), re.M)
        for source in words.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (ROOT / source).exists() or source.startswith("dist/"), source
        assert any(fnmatch(source, each) for each in let_in), source


@pytest.mark.e2e
def test_the_image_gets_all_that_the_project_is_built_of(tmp_path: Path) -> None:
    """What is copied makes a wheel with the packages, the settings and the findings' pages."""
    text = "".join(stages(DEPLOY / "Dockerfile"))
    for words in re.findall(r"^COPY (?!--from|requirements)(.*)$", text, re.M):
        *sources, _ = words.split()
        for source in sources:
            place = tmp_path / source
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, place)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "wheel"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, tmp_path], check=True)
    (wheel,) = (tmp_path / "wheel").iterdir()
    listed = "\n".join(ZipFile(wheel).namelist())
    for name in ("rebalance_audit/cli.py", "rebalance_core/", "conf/audit.toml"):
        assert name in listed, name
    assert "findings/orphaned.md" in listed


def parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a manifest."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from parts(each)


def containers(document: Any) -> list[dict[str, Any]]:
    return [each for part in parts(document) for each in part.get("containers", ())]


def volumes(document: Any) -> Iterator[str]:
    """The name of every volume."""
    for part in parts(document):
        for each in (*part.get("volumes", ()), *part.get("volumeClaimTemplates", ())):
            yield each.get("name") or each["metadata"]["name"]


def parse(command: str) -> None:
    """Reads each line of a shell's text that calls the audit, with its variables as text."""
    lines = [line for line in command.splitlines() if "rebalance-audit " in line]
    assert lines
    for line in lines:
        words = shlex.split(re.sub(r"\$\([^)]*\)|\$date", "2026-11-20", line))
        at = [Path(word).name for word in words].index("rebalance-audit")
        given = build_parser(None).parse_args(words[at + 1 :])
        # What reads settings reads those of the deployment: language and strategies are of all.
        assert getattr(given, "settings", "none are read"), line
        # What the settings keep no option removes.
        assert given.command != "prune" or not given.reports, line


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_every_command_of_a_manifest_is_one_of_the_audit(manifest: Path) -> None:
    for document in yaml.safe_load_all(manifest.read_text()):
        assert {"apiVersion", "kind", "metadata", "spec"} == document.keys()
        if document["kind"] == "SparkApplication":
            spec = document["spec"]
            entry = Path(spec["mainApplicationFile"].removeprefix("local://"))
            build_parser(None).parse_args([entry.stem, *spec["arguments"]])
            # What it names is in its image.
            image = stages(DEPLOY / "Dockerfile.spark")[-1]
            named = [Path(each.removeprefix("local://")) for each in spec["deps"]["pyFiles"]]
            for file in (entry, *named):
                assert file.name in image, file
                assert str(file.parent) in image, file
            built = (DEPLOY / "Dockerfile.spark").read_text()
            assert f"apache/spark:{spec['sparkVersion']}-" in built
            continue
        found = containers(document)
        assert found
        for container in found:
            if container.get("command") == ["/bin/sh", "-ec"]:
                subprocess.run(["sh", "-n", "-c", container["args"][0]], check=True)
                parse(container["args"][0])
            else:
                # Whatever the image's entrypoint is.
                parse(shlex.join([*container["command"], *container["args"]]))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.name)
def test_no_pod_of_a_manifest_is_root_or_without_a_limit(manifest: Path) -> None:
    for document in yaml.safe_load_all(manifest.read_text()):
        assert "runAsNonRoot: true" in yaml.safe_dump(document)
        for container in containers(document):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"]["memory"]
            mounted = {each["name"] for each in container["volumeMounts"]}
            assert mounted <= {*volumes(document)}


def test_every_image_of_a_manifest_has_the_version_of_the_project() -> None:
    files = [*MANIFESTS, *DOCKERFILES, ROOT / "docs" / "nightly.md"]
    named = {
        (file.name, version)
        for file in files
        for version in re.findall(r"registry\.example\.org/[\w-]+:(\S+)", file.read_text())
    }
    assert len({name for name, _ in named}) == len(files)
    assert {version for _, version in named} == {__version__}


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_every_command_of_a_unit_is_one_of_the_audit(unit: Path) -> None:
    commands = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.M)
    assert commands
    for command in commands:
        shell = re.fullmatch(r"/bin/sh -ec '(.*)'", command)
        text = (shell[1] if shell else command).replace("%%", "%").replace("$$", "$")
        assert "%" not in text.replace("+%F", "")
        if "rebalance-audit " in text:
            parse("\n".join(re.split(r"; |&& |\|\| ", text)))


def test_every_command_of_the_crontab_is_one_of_the_audit() -> None:
    lines = (DEPLOY / "crontab").read_text().splitlines()
    commands = [line for line in lines if line.startswith(("@reboot ", "30 0 "))]
    for command in commands:
        text = re.sub(r"^(@reboot|30 0 \* \* \*) ", "", command).replace("\\%", "%")
        subprocess.run(["sh", "-n", "-c", text], check=True)
        parse("\n".join(re.split(r"; |&& |\|\| ", text)))
    assert len(commands) == 2


def test_the_night_by_hand_has_the_settings_on_every_line() -> None:
    page = (ROOT / "docs" / "nightly.md").read_text()
    parse(page.partition("date=$(date")[2].partition("```")[0])


def test_the_folder_of_the_metrics_is_made_before_they_are_written() -> None:
    (job,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "nightly.yaml").read_text())
    (container,) = containers(job)
    lines = container["args"][0].splitlines()
    (at,) = [number for number, line in enumerate(lines) if "--metrics" in line]
    words = shlex.split(lines[at])
    folder = Path(words[words.index("--metrics") + 1]).parent
    assert f"mkdir -p {folder}" in lines[:at]


def test_the_crontab_says_when_its_lines_are_run() -> None:
    comment = " ".join((DEPLOY / "crontab").read_text().partition("PATH=")[0].split())
    assert "local time" in comment
    assert "start it by hand once" in comment


def test_no_page_installs_the_project_from_an_index() -> None:
    # An extra of an installed project, as of docs/lakes.md, is another matter: pip has it there.
    wheel = re.compile(rf"dist/rocketmq_rebalance_audit-{re.escape(__version__)}-py3-none-any\.whl")
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for line in re.findall(r"^\S*pip install .*rocketmq.*$", page.read_text(), re.M):
            assert wheel.search(line), f"{page}: {line}"


def test_the_manager_of_units_reads_them() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    folder = DEPLOY / "systemd"
    command = ["systemd-analyze", "verify", *folder.iterdir()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # The audit is not installed where the units say.
    wrong = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert not wrong
