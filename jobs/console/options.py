"""Options of each command, its purpose and an example, as ``jobs.console.arguments`` reads them.

And the words that people type for a command or a table that has another name here. Nothing but
names is imported: ``--help``, an error of usage and completion wait for no library.
"""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from ..config import choices
from ..config.choices import AUTO, INCOMPLETE, LAST_RUN, LOCAL, NOWHERE, SPARK

#: Options that a command has by their names alone.
SHARED = f"""
    --reports DIR  the folder of the published reports
    --date D  a published date, such as 2026-11-20; default: the last one
    --language {{{",".join(choices.LANGUAGES)}}}  the language of the output; default: the setting
            language
    --settings FILE  the settings file; default: {choices.DEFAULT_SETTINGS} here, else the
            installed one
    --set A.B=C*  override one setting; repeatable
    --quiet  print results and errors only
    --dumps PATH...  dump files, folders or globs; JSON Lines, plain or .gz
    --since T  audit from this time on, ISO 8601; {LAST_RUN}: from where
            the last published run (of the date) began
    --until T  audit up to this time, exclusive, ISO 8601
    --known-issues FILE  the known issues; default: {choices.DEFAULT_KNOWN_ISSUES} here, else
            the installed one
    --fail-on GATE,GATE*  exit with 1 if one of these holds, such as CRITICAL,{INCOMPLETE}.
            {", ".join(choices.SEVERITIES)}: there is a finding of this severity or worse, known
            issues aside; {INCOMPLETE}: something was not read or not audited
    --engine {{{AUTO},{LOCAL},{SPARK}}} [{AUTO}]  {LOCAL}: processes on this machine, without Java;
            {SPARK}: Spark; default: by the size of the input
    --workers N  processes of --engine {LOCAL}; default: one per core; small input: one
    --master URL  Spark's master; default: local[*]
    --dry-run  write nothing; print what would be read, with sizes, what would be written where, and
            the settings
"""
#: The servers, how they are asked, and of what.
_SERVERS = """\
    --namesrv A*  host:port of a nameserver; give the option once for each
    --config FILE  a file of clusters, like docs/collect/collect.toml
    --name C  the name of the cluster in the dumps; default: RocketMQ's
    --cluster P  only these RocketMQ clusters
    --group P*  only these consumer groups; repeatable
    --topic P  only the routes of these topics
    --without PART*  do not ask for routes, running-infos, offsets or request-modes; repeatable
    --timeout T  the longest wait for an answer; default: 5 s
    --parallel N  requests at a time per address; default: 4
    --rate N  requests a second per address; default: no limit
    --account FILE  a file with accessKey: and secretKey:, like conf/tools.yml
    --tls  use TLS; the --config file names the certificates"""
#: Options for the group and topic, the place where they are looked up, and the time.
_WHAT = """\
    | --dumps PATH...  local dumps; default: those that the last run here read
    | --snapshots DIR  snapshot tables, in place of dumps
    --group G!  the consumer group"""
_WHEN = """\
    --at TIME  as of this time, such as 2026-11-20T10:00:00Z; default: the last snapshot
    --cluster C  the cluster, if the group is in several
    --full  show every broker, queue and client in the pictures
    --language --settings --set --quiet"""

#: Commands in the order of the help: those of every day, and the others.
EVERY_DAY: Mapping[str, str] = {
    "live": f"""collect from your cluster and audit it at once
The first verdict comes after one round, too early to see what lasts; the second one at least 75 s
and persistence_seconds later. It changes nothing in the cluster. See also collect --help.
example: live --namesrv 10.0.0.1:9876
{_SERVERS}
    --output DIR  where to write dumps, reports and page; default: out/live
    --watch T  how long to watch; default: persistence_seconds; 0: one round only
    --fail-on --language --settings --set --quiet""",
    "collect": f"""ask nameservers and brokers, and write their answers as dumps
It changes nothing in the cluster and finds the brokers through the nameservers. It needs --dumps,
and --namesrv or --config.
The keys of an account (ACL) come from the environment (REBALANCE_AUDIT_ACCESS_KEY and
REBALANCE_AUDIT_SECRET_KEY) or from --account. P is a regular expression for the whole name.
example: collect --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 --dumps dumps/ --every 60
{_SERVERS}
    --dumps DIR  where to write the dumps: a file per round, in folders by date
    --every T  the time from round to round, such as 60 or 5m; default: one round only
    --for T  stop after this time, such as 24h; default: at SIGTERM
    --metrics FILE  where to write the collector's metrics (*.prom) after each round
    --quiet  print failures only""",
    "run": """ingest dumps, audit them, publish the reports and print a summary
example: run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/
    --dumps
    --output DIR!  the folder for snapshots/ and reports/
    --date D  audit this day in UTC, such as 2026-11-20
    --since --until --known-issues --fail-on
    --settings --set --quiet --engine --workers --master --dry-run""",
    "report": """write the report of a published run: a page, a ticket, or a site of many nights
With --nights it writes a site: a page for each night, and index.html, which links them and shows
each group night by night. A night without a published run is shown as missing. Serve the folder, or
open index.html: the pages need no server.
example: report --reports out/reports --date 2026-11-20
    --reports --date
    | --nights N  write a site of the last N calendar days up to the date
    | --finding ID  write only the picture of this finding_id: an SVG, for a chat
    --output PATH  the file, or the folder (existing, or ending with /) for dt=<date>.<format>;
            -: standard output; with --nights the folder; default: report/ beside the tables
    --format {html,markdown} [html]  a page, or a ticket; default: html
    --top N [10]  how many topics have pictures, worst first; default: 10
    --language --settings --set --quiet""",
    "explain": f"""\
show who takes which queue, why, what is wrong and what repairs it; needs no Spark
example: explain --group G_ORDER --topic ORDER --at 2026-11-20T10:00:00Z
{_WHAT}
    --topic T  the topic, if the group has several
{_WHEN}""",
    "what-if": f"""show what changes would do, and whether they can be rolled out; needs no Spark
Changes apply in the order of the options. Exit code 1: not safe, see docs/what_if.md.
example: what-if --group G --topic T --leave 10.0.0.4@app --queues 8
{_WHAT}
    --topic T  the topic; default: all (--queues: no retry topic)
{_WHEN}
    --format {{table,json}} [table]
    changes, at least one:
    --leave ID*  one process with this client id leaves
    --join ID*  one more process with this client id joins
    --strategy NAME*  all members use this strategy; NAME={{key = value}} with parameters
    --add-broker NAME=N*  a broker with N queues is added
    --remove-broker NAME*  this broker is removed
    --queues N*  every broker has N queues; NAME=N: this broker has
    --unify-list NAME*  this broker lists all members
    --mend FAULT*  this fault of group_faults is repaired
    --separate-ids  every process gets a separate id
    --subscribe-all  all members subscribe to the topic, with one filter""",
    "check": """say whether a finding is gone, still there, or cannot be said yet
A finding of the last report: the cluster is asked until there is an answer, or newer dumps are
audited. Exit code 0: gone; 1: still there, or another fault came; 5: cannot be said yet.
example: check 451f726011011044 --namesrv 10.0.0.1:9876
    FINDING_ID  its finding_id, as in tables and alerts
    --group G  all findings that count of a consumer group, in place of one
    --topic T  of the group: only this topic
    --cluster C  the cluster, if the group is in several
    --namesrv A*  host:port of a nameserver; give the option once for each
    --config FILE  a file of clusters, like docs/collect/collect.toml
    --name C  the name of the cluster in the report; default: RocketMQ's
    --account FILE  a file with accessKey: and secretKey:, like conf/tools.yml
    --tls  use TLS; the --config file names the certificates
    --for T  for so long at most; default: 75 s and twice persistence_seconds; 0: one round
    | --dumps PATH...  newer dumps, in place of the cluster
    | --snapshots DIR  newer snapshot tables, in place of the cluster
    --format {text,json} [text]  json: the answer about each finding
    --reports --date --language --settings --set --quiet""",
    "show": """print a published table, or what is known of a group or a client
With a table, --help has what a row of it is, and each of its columns.
example: show orphaned_queues --reports out/reports --group G_ORDER
    TABLE  a table such as orphaned_queues, or summary; default: lists the tables; with --group its
            problems and topics, with --client its groups
    --format {table,json,csv} [table]  default: table
    --group G  only this consumer group
    --topic T  only this topic
    --client ID  only this client id, or those of this address
    --columns A,B  only these columns, in this order
    --all-columns  every column; by default a table has the 8 that matter most
    --wide  one line per row, however wide; nothing is cut
    --no-pager  never show a long table in $PAGER (less)
    --reports --date --settings --set --quiet""",
    "alert": f"""send a published run to chats and on-call tools, or write its metrics
Without --metrics and --webhook the message is printed. [alerts] in the settings says where it goes
and what is sent; docs/alerts.md has an example for each service. The URL comes from the environment
(REBALANCE_AUDIT_WEBHOOK) or from the file that alerts.webhook_file names. The published run is not
changed. Exit code 2: no URL is set; 4: no service took the message.
example: alert --reports out/reports --metrics rebalance.prom --webhook
    --reports --date
    --metrics FILE  where to write Prometheus metrics (*.prom), in one step; -: standard output
    --webhook  send the new findings that were not sent yet
    --again  print the message as if nothing had been sent before; sends nothing
    --service {{{",".join((*choices.WEBHOOK_SERVICES, "EMAIL"))}}}  print the message as
            this service gets it; sends nothing
    --language --settings --set --quiet""",
}
OTHERS: Mapping[str, str] = {
    "init": f"""write the settings of a new installation, and its nightly job
On a terminal it asks for what no option gives. Existing files are replaced with --force only.
example: init --namesrv 10.0.0.1:9876 --output /data/audit --messages SLACK --schedule cron
    --namesrv A*  host:port of a nameserver; give the option once for each
    --dumps PATH  existing dumps, in place of --namesrv
    --output DIR  the folder for snapshots/ and reports/
    --messages {{{",".join((*choices.WEBHOOK_SERVICES, NOWHERE))}}}  where alerts are sent
    --language {{{",".join(choices.LANGUAGES)}}}  the language of reports and alerts
    --schedule {{{",".join(choices.SCHEDULES)}}}  the nightly job to write: a crontab, an Airflow
            DAG, or a Kubernetes CronJob, which with --namesrv has a Deployment of the collector
    --settings FILE  the settings file to write; default: {choices.DEFAULT_SETTINGS}
    --force  replace existing files""",
    "ingest": """read dumps and write them as snapshot tables
example: ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots
    --dumps
    --snapshots DIR  where to write the snapshot tables, a folder each
    --settings --set --quiet --engine --workers --master --dry-run""",
    "audit": """audit snapshot tables and publish the reports
example: audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20
    --snapshots DIR  the snapshot tables, a folder each
    --reports DIR  where to publish the reports
    --date D  audit this day in UTC, such as 2026-11-20
    --since --until --known-issues --fail-on
    --settings --set --quiet --engine --workers --master --dry-run""",
    "prune": """remove old reports, old dumps and what failed runs left behind
Days count back from the last date in the folder, which stays. It removes only files that are named
as the audit or the collector names them. Without --reports, --snapshots and --dumps it takes the
reports at paths.reports. To keep the three for different times, use three commands.
example: prune --keep 90d --reports out/reports --dry-run
    --keep T  how long to keep, such as 90d or 12w; default: retention.keep_days
    --reports DIR  removes published dates here, with their pages and notes of alerts
    --snapshots DIR  removes what failed ingests left here; the last ingest stays
    --dumps DIR  removes whole days of the collector's rounds here, on this machine
    --dry-run  remove nothing; print what would be removed
    --settings --set --quiet""",
    "completion": """print a shell's completion of commands, options and names
In zsh: eval "$(rebalance-audit completion zsh)" in ~/.zshrc, after compinit. In fish:
rebalance-audit completion fish > ~/.config/fish/completions/rebalance-audit.fish
example: completion bash > ~/.local/share/bash-completion/completions/rebalance-audit
    SHELL {bash,zsh,fish}  the shell""",
}
COMMANDS: Mapping[str, str] = {**EVERY_DAY, **OTHERS}
#: Usages where argparse does not say it well.
USAGES: Mapping[str, str] = {
    # The names of all services are too long for a line.
    "alert": "%(prog)s [-h] [-v] [--reports DIR] [--date D] [--metrics FILE]\n"
    "                             [--webhook] [--again] [--service SERVICE]\n"
    "                             [--language L] [--settings FILE] [--set A.B=C] [--quiet]",
    "init": "%(prog)s [-h] [-v] [--namesrv A] [--dumps PATH] [--output DIR]\n"
    "                            [--messages SERVICE] [--language L] [--schedule S]\n"
    "                            [--settings FILE] [--force]",
    "check": "%(prog)s FINDING_ID | --group G [--topic T] [--cluster C]\n"
    "                             --namesrv A ... | --config FILE | --dumps PATH ... | "
    "--snapshots DIR\n"
    "                             [--for T] [--format text|json] [--reports DIR] [--date D] ...",
    "what-if": "%(prog)s [--dumps PATH ... | --snapshots DIR] --group G [--topic T] CHANGE ...\n"
    "                               [--at TIME] [--cluster C] [--full] [--format table|json] ...",
}

#: The words for each thing that letters do not lead to, each in the singular.
_WORDS_OF: Mapping[str, str] = {
    "report --nights 30": "night history trend day week month calendar index site overview",
    "report": "page html ticket markdown picture summarize",
    "report --finding ID": "finding svg drawing image",
    "show": "table list ls print get",
    "show --group G": "group consumer consumergroup topic",
    "show --client ID": "client member pod process id instance",
    "show summary": "sum total number count figure gate",
    "show problems": "problem issue wrong open worst",
    "show group_faults": "fault cause error",
    "show verdict": "result outcome state",
    "show gaps": "gap missing incomplete",
    "show group_health": "health coverage backlog lag wait waiting unaudited audited",
    "show orphaned_queues": "orphan lost unread unconsumed nobody missed",
    "show duplicate_queues": "twice double dup",
    "show stalled_queues": "stall stuck blocked hang hung",
    "show stacked_client_ids": "shared sharing sharedid duplicateid",
    "show unreadable_queues": "unreadable unwritable",
    "show former_findings": "former resolved mended repaired gone returned",
    "show reassignments": "rebalance reassign moved move change",
    "show events": "event deploy restart failover timeline happened",
    "show allocations": "allocation owner share assignment who",
    "show allocation_drift": "drift held holding",
    "show state_runs": "situation period",
    "show group_load": "load balance uneven idle",
    "show quarantine": "refused rejected bad badline",
    "explain": "why diagnose describe detail reason moment",
    "what-if": "simulate predict scale plan try shrink grow add remove",
    "check": "fix fixed verify recheck confirm",
    "alert": "send notify notification message mail slack dingtalk webhook",
    "alert --metrics FILE": "metric prometheus prom grafana",
    "live": "now watch status monitor current",
    "collect": "dump fetch scrape poll crawl",
    "run": "start nightly job all",
    "init": "setup config configure install setting cron schedule",
    "prune": "clean cleanup delete rm retention purge",
    "--help": "help man usage",
    "--version": "version",
}
#: The least likeness of two words that are spelt alike, and the fewest letters of a beginning: as
#: for names of other things (``rebalance_core.errors.nearest``), which brings NumPy.
_ALIKE, _SHORTEST_BEGINNING = 0.7, 3
_WORDS = {word: meant for meant, words in _WORDS_OF.items() for word in words.split()}
_TABLES = [meant.removeprefix("show ") for meant in _WORDS_OF if re.fullmatch(r"show \w+", meant)]


def meant_by(word: str, tables: Collection[str] = _TABLES) -> list[str]:
    """The command, without ``rebalance-audit``, that a word may mean; ``tables``: the names of all.

    A word by its meaning first, then what is spelt alike: a command, a table, a word.

    >>> meant_by("nights"), meant_by("Events"), meant_by("shw"), meant_by("orphaned")
    (['report --nights 30'], ['show events'], ['show'], ['show orphaned_queues'])
    >>> meant_by("histroy"), meant_by("xyz")
    (['report --nights 30'], [])
    """
    names = {command: command for command in COMMANDS} | {
        table: f"show {table}" for table in tables
    }
    folded = word.casefold()
    for form in (folded, folded.removesuffix("s")):
        if meant := names.get(form) or _WORDS.get(form):
            return [meant]
    for there in (names, _WORDS):
        near = get_close_matches(folded, there, cutoff=_ALIKE)
        if not near and len(folded) >= _SHORTEST_BEGINNING:
            near = [name for name in there if name.startswith(folded)]
        if near:
            return list(dict.fromkeys(there[name] for name in near))
    return []
