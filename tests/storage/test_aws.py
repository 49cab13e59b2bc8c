"""Server and keys of S3, as the environment and the files of AWS give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.storage.stores import Keys, S3Access, with_endpoint

KEYS = "aws_access_key_id = {0}\naws_secret_access_key = s\n"
OF_ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The variables by which the SDKs find two files with the profiles that people write."""
    (tmp_path / "credentials").write_text(
        f"[default]\n{KEYS.format('DEFAULT')}[night]\n{KEYS.format('NIGHT')}"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n"
        "[profile night]\nendpoint_url = http://profile:1\n"
        f"[profile day]\n{KEYS.format('DAY')}aws_session_token = t\nservices = ours\n"
        "endpoint_url = http://all:1\n"
        "[services ours]\ns3 =\n  endpoint_url = http://ours:1\n"
        "[profile sso]\nsso_session = us\n"
        "[profile role]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = night\n"
    )
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }


@pytest.mark.parametrize(
    ("uri", "variables", "endpoint", "key_id"),
    [
        ("s3://b/x", {}, None, "DEFAULT"),
        ("s3://b/x", {"AWS_ENDPOINT_URL": "http://env:1"}, "http://env:1", "DEFAULT"),
        (
            "s3://b/x",
            {"AWS_ENDPOINT_URL": "http://env:1", "AWS_ENDPOINT_URL_S3": "http://s3:1"},
            "http://s3:1",
            "DEFAULT",
        ),
        ("s3://b/x", OF_ENVIRONMENT | {"AWS_PROFILE": "day"}, "http://ours:1", "ENV"),
        ("s3://b/x", {"AWS_PROFILE": "night"}, "http://profile:1", "NIGHT"),
        ("s3://b/x", {"AWS_PROFILE": "day"}, "http://ours:1", "DAY"),
        (
            "s3://b/x",
            {"AWS_PROFILE": "night", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
            None,
            "NIGHT",
        ),
        (
            "s3://b/x?endpoint_override=uri:1&scheme=http",
            {"AWS_PROFILE": "night", "AWS_ENDPOINT_URL": "http://env:1"},
            "http://uri:1",
            "NIGHT",
        ),
        ("s3://URI:s@b/x", OF_ENVIRONMENT | {"AWS_PROFILE": "night"}, "http://profile:1", "URI"),
        ("s3://b/x", {"AWS_PROFILE": "nobody"}, None, None),
    ],
)
def test_the_uri_counts_before_the_environment_and_that_before_the_profile(
    files: dict[str, str], uri: str, variables: dict[str, str], endpoint: str, key_id: str
) -> None:
    access = S3Access.of(uri, files | variables)
    assert access.endpoint == endpoint
    assert (access.keys and access.keys.key_id) == key_id


def test_a_key_for_a_time_has_its_token_and_that_of_a_uri_none(files: dict[str, str]) -> None:
    variables = files | {"AWS_PROFILE": "day", "AWS_SESSION_TOKEN": "t2"}
    assert S3Access.of("s3://b/x", variables).keys == Keys("DAY", "s", "t")
    assert S3Access.of("s3://k:s@b/x", variables).keys == Keys("k", "s")


@pytest.mark.parametrize(("profile", "given_by"), [("sso", "sso_session"), ("role", "role_arn")])
def test_a_profile_whose_keys_come_from_elsewhere_is_named(
    files: dict[str, str], profile: str, given_by: str
) -> None:
    access = S3Access.of("s3://b/x", files | {"AWS_PROFILE": profile})
    assert (access.keys, access.profile, access.given_by) == (None, profile, given_by)


@pytest.mark.parametrize("text", ["no section\n", "[default\n", "\xff"])
def test_a_file_that_cannot_be_read_has_no_profile(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_bytes(text.encode("latin-1"))
    variables = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "HOME": str(tmp_path)}
    assert S3Access.of("s3://b/x", variables) == S3Access(None, None)


def test_a_user_without_a_home_has_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert S3Access.of("s3://b/x", {}) == S3Access(None, None)
    assert S3Access.of("s3://b/x", OF_ENVIRONMENT).keys == Keys("ENV", "s")
    assert S3Access.of("s3://b/x", {"AWS_CONFIG_FILE": "~nobody-here/x"}) == S3Access(None, None)


def test_pyarrow_is_told_the_endpoint_of_a_profile_and_keeps_that_of_a_uri(
    files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (files | {"AWS_PROFILE": "night"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    told = with_endpoint("s3://b/x?region=r")
    assert told.startswith("s3://b/x?region=r&")
    assert told.endswith("&endpoint_override=profile%3A1&scheme=http")
    # Without a value an option is not left out: PyArrow would look for the region.
    assert with_endpoint("s3://b/x?region=").startswith("s3://b/x?region=&")
    assert "override=uri&" in with_endpoint("s3://b/x?endpoint_override=uri&scheme=https")
