"""Choices of some options, and their defaults.

Nothing is imported here: ``--help`` and an error of usage need these names and no library.
"""

from pathlib import Path
from typing import Literal, get_args

Severity = Literal["INFO", "WARNING", "CRITICAL"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

#: The services that a message is posted to; e-mail has settings of its own.
WebhookService = Literal["SLACK", "DINGTALK", "FEISHU", "WECOM", "TEAMS", "PAGERDUTY", "JSON"]
WEBHOOK_SERVICES: tuple[WebhookService, ...] = get_args(WebhookService)
#: The choice of ``init`` in place of a service: nothing is posted.
NOWHERE = "NOWHERE"

#: Schedules of the audit each night, as ``init`` writes them, and none.
SCHEDULES, NOTHING = ("cron", "dag", "kubernetes"), "nothing"

#: Something was not read or not audited: a state of a run, and a gate.
INCOMPLETE = "INCOMPLETE"
#: Gates of ``--fail-on``: a finding of a severity or worse, and what is missing.
GATES = (*SEVERITIES, INCOMPLETE)

AUTO, LOCAL, SPARK = "auto", "local", "spark"

#: Languages by code, as people call them; English is the source and has no folder.
LANGUAGES = {"en": "English", "zh": "中文"}

#: The value of --since in place of a time.
LAST_RUN = "last"

#: The value in place of a file's name that means standard output.
STANDARD_OUTPUT = "-"

#: Files of settings and known issues where none are named.
DEFAULT_SETTINGS = Path("conf/audit.toml")
DEFAULT_KNOWN_ISSUES = Path("conf/known_issues.toml")
