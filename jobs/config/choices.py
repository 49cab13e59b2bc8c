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
#: In place of a service for ``init``: nothing is posted.
NOWHERE = "NOWHERE"

#: What audits each night, as ``init`` writes it; in place of one of them: nothing does.
SCHEDULES, NOTHING = ("cron", "dag", "kubernetes"), "nothing"

#: Something was not read or not audited: a state of a run, and a gate.
INCOMPLETE = "INCOMPLETE"
#: What ``--fail-on`` may name: a severity, of which or above which there is a finding, or that.
GATES = (*SEVERITIES, INCOMPLETE)

AUTO, LOCAL, SPARK = "auto", "local", "spark"

#: By code how people call them; English is the source and has no folder.
LANGUAGES = {"en": "English", "zh": "中文"}

#: In place of a time for --since.
LAST_RUN = "last"

#: In place of a file's name it is standard output.
STANDARD_OUTPUT = "-"

#: Where settings and known issues are looked for where none are named.
DEFAULT_SETTINGS = Path("conf/audit.toml")
DEFAULT_KNOWN_ISSUES = Path("conf/known_issues.toml")
