"""Options of each command, its purpose and an example, as ``jobs.console.arguments`` reads them.

Nothing but names is imported: ``--help``, an error of usage and completion wait for no library.
"""

from collections.abc import Mapping

from ..config import choices
from ..config.choices import AUTO, INCOMPLETE, LAST_RUN, LOCAL, NOWHERE, SPARK

#: Options that a command has by their names alone.
SHARED = f"""
    --reports DIR  where the reports are published
    --date D  a date, as 2026-11-20; default: the last one published
    --language {{{",".join(choices.LANGUAGES)}}}  the language of what is shown; default: the
            setting language
    --settings FILE  the settings; default: {choices.DEFAULT_SETTINGS} here, else the installed one
    --set A.B=C*  override one setting
    --quiet  print results and errors only
    --dumps PATH...  JSON Lines, plain or .gz: files, folders, globs
    --since T  audit from this time on, ISO 8601; {LAST_RUN}: the same begin as
            the last published run (of the date)
    --until T  audit up to this time, exclusive, ISO 8601
    --known-issues FILE  the file; default: {choices.DEFAULT_KNOWN_ISSUES} here, else the installed
            one
    --fail-on GATE,GATE*  exit with 1 if one of these is so, as CRITICAL,{INCOMPLETE}.
            {", ".join(choices.SEVERITIES)}: there is a finding of this severity or a worse one,
            known issues aside; {INCOMPLETE}: something was not read or not audited
    --engine {{{AUTO},{LOCAL},{SPARK}}} [{AUTO}]  {LOCAL}: processes of this machine, without Java;
            {SPARK}: Spark; default: by the input's size
    --workers N  processes of the engine {LOCAL}; default: one for each core, one for a small input
    --master URL  Spark's master; default: local[*]
    --dry-run  print what would be read, with sizes, what would be written where, and the settings;
            write nothing
"""
#: The servers, how they are asked, and of what.
_SERVERS = """\
    --namesrv A*  host:port of a nameserver; give the option once for each
    --config FILE  a file with clusters, as docs/collect/collect.toml
    --name C  the cluster's name in the dumps; default: RocketMQ's name
    --cluster P  only these of RocketMQ's clusters
    --group P*  only these consumer groups; repeatable
    --topic P  only the routes of these topics
    --without PART*  do not ask routes, running-infos, offsets or request-modes; repeatable
    --timeout T  how long to wait for an answer; default: 5 s
    --parallel N  requests at a time to an address; default: 4
    --rate N  requests a second to an address; default: no limit
    --account FILE  a file with accessKey: and secretKey:, as conf/tools.yml
    --tls  encrypt; the file of --config has the certificates"""
#: Options for the group and topic, the place where they are looked up, and the time.
_WHAT = """\
    | --dumps PATH...  local dumps; default: what the last run here read
    | --snapshots DIR  the snapshot tables of ingest
    --group G!  the consumer group"""
_WHEN = """\
    --at TIME  a time, as 2026-11-20T10:00:00Z; default: the last snapshot
    --cluster C  the cluster, where the group is in several
    --language --settings --set --quiet"""

#: Commands in the order of the help: those of every day, and the others.
EVERY_DAY: Mapping[str, str] = {
    "live": f"""collect from your cluster and audit it at once
The first verdict comes after one round, in which nothing can be seen to last; the second one after
persistence_seconds. It changes nothing in the cluster. See also collect --help.
example: live --namesrv 10.0.0.1:9876
{_SERVERS}
    --output DIR  gets a folder with dumps, reports and page; default: out/live
    --watch T  how long to watch; default: persistence_seconds; 0: one round alone
    --fail-on --language --settings --set --quiet""",
    "collect": f"""ask nameservers and brokers, and write their answers as dumps
It changes nothing in the cluster, and finds the brokers by the nameservers. It needs --namesrv or
--config, and --dumps.
The keys of an account (ACL) come from the environment (REBALANCE_AUDIT_ACCESS_KEY and
REBALANCE_AUDIT_SECRET_KEY) or from --account. P is a regular expression over the whole name.
example: collect --namesrv 10.0.0.1:9876 --namesrv 10.0.0.2:9876 --dumps dumps/ --every 60
{_SERVERS}
    --dumps DIR  gets a file a round, in folders by date
    --every T  a round each T, as 60 or 5m; default: one round
    --for T  how long, as 24h; default: until SIGTERM
    --metrics FILE  gets the collector's metrics, *.prom, after a round
    --quiet  only what fails""",
    "run": """ingest dumps, audit them, publish the reports and print a summary
example: run --dumps 'dumps/2026-11-20/*.jsonl.gz' --output out/
    --dumps
    --output DIR!  the folder that gets snapshots/ and reports/
    --date D  audit this day, UTC, as 2026-11-20
    --since --until --known-issues --fail-on
    --settings --set --quiet --engine --workers --master --dry-run""",
    "report": """write the report of a published run: a page, a ticket, or a site of many nights
With --nights it writes a site: a page for each night, linked, and index.html with how each group
was, night by night. A night without a published run is shown as missing. Serve the folder, or open
index.html: the pages need no server.
example: report --reports out/reports --date 2026-11-20
    --reports --date
    | --nights N  a site of so many days of the calendar up to the date
    | --finding ID  the picture of this finding_id alone, as SVG, for a chat
    --output PATH  the file, or a folder (ends with /, or is one) that gets dt=<date>.<format>;
            -: standard output; of a site the folder; default: report/ beside the tables
    --format {html,markdown} [html]
    --top N [10]  how many topics, worst first, in full and with pictures; default: 10
    --language --settings --set --quiet""",
    "explain": f"""\
show who takes which queue, why, what is wrong and what repairs it; needs no Spark
example: explain --group G_ORDER --topic ORDER --at 2026-11-20T10:00:00Z
{_WHAT}
    --topic T  the topic, where the group has several
{_WHEN}""",
    "what-if": f"""show what changes would do, and whether they can be rolled out; needs no Spark
Changes are made in the order of the options. Exit code 1: not safe, see docs/what_if.md.
example: what-if --group G --topic T --leave 10.0.0.4@app --queues 8
{_WHAT}
    --topic T  the topic; default: every topic (--queues: not the retry topic)
{_WHEN}
    --format {{table,json}} [table]
    changes, at least one:
    --leave ID*  a process with this client id leaves
    --join ID*  one more process with this client id joins
    --strategy NAME*  all use it; NAME={{key = value}} with parameters
    --add-broker NAME=N*  a broker is added with so many queues
    --remove-broker NAME*  a broker is removed
    --queues N*  so many queues on every broker; NAME=N on one
    --unify-list NAME*  this broker lists all members
    --mend FAULT*  a fault of group_faults is repaired
    --separate-ids  every process gets a separate id
    --subscribe-all  all members subscribe to it, by one filter""",
    "show": """print a published table
example: show orphaned_queues --reports out/reports --group G_ORDER
    TABLE  the name of a table, as orphaned_queues, or summary; without it the tables are listed
    --format {table,json,csv} [table]
    --group G  only this consumer group
    --topic T  only this topic
    --columns A,B  only these columns, in this order
    --all-columns  every column; without it a person gets the 8 that matter
    --wide  a row is one line, however wide; nothing is cut
    --no-pager  never show a long table in $PAGER (less)
    --reports --date --settings --set --quiet""",
    "alert": """send a published run to chats and on-call tools, write it for Prometheus
Without --metrics and --webhook the message is printed. [alerts] in the settings says where it goes
and what is sent; docs/alerts.md has an example for each service. The URL comes from the environment
(REBALANCE_AUDIT_WEBHOOK) or from the file that alerts.webhook_file names. The published run stays
as it is. Exit code 2: there is no URL; 4: nobody took the message.
example: alert --reports out/reports --metrics rebalance.prom --webhook
    --reports --date
    --metrics FILE  where to write the metrics, *.prom, in one step; -: standard output
    --webhook  send what is new and was not sent yet
    --language --settings --set --quiet""",
}
OTHERS: Mapping[str, str] = {
    "init": f"""write the settings of a new place, and what audits it each night
On a terminal it asks for what no option says. Nothing that is there is replaced without --force.
example: init --namesrv 10.0.0.1:9876 --output /data/audit --messages SLACK --schedule cron
    --namesrv A*  host:port of a nameserver; give the option once for each
    --dumps PATH  or the dumps that are there already
    --output DIR  the folder that gets snapshots/ and reports/
    --messages {{{",".join((*choices.WEBHOOK_SERVICES, NOWHERE))}}}  where messages go
    --language {{{",".join(choices.LANGUAGES)}}}  the language of what people read
    --schedule {{{",".join(choices.SCHEDULES)}}}  what audits each night is written, too: a line of
            cron, a DAG of Airflow, or a CronJob, with the collector's Deployment for --namesrv
    --settings FILE  the file that is written; default: {choices.DEFAULT_SETTINGS}
    --force  replace what is there""",
    "ingest": """read dumps, and write them as snapshot tables
example: ingest --dumps dumps/2026-11-20/ --snapshots lake/snapshots
    --dumps
    --snapshots DIR  gets a folder for each table
    --settings --set --quiet --engine --workers --master --dry-run""",
    "audit": """audit snapshot tables and publish the reports
example: audit --snapshots lake/snapshots --reports lake/reports --date 2026-11-20
    --snapshots DIR  has a folder for each table
    --reports DIR  gets the published reports
    --date D  audit this day, UTC, as 2026-11-20
    --since --until --known-issues --fail-on
    --settings --set --quiet --engine --workers --master --dry-run""",
    "prune": """remove old reports, old dumps, and what failed runs left
Days are counted back from the last date that is there, which stays. Only files with the names of
the audit's or the collector's files are removed. Without --reports, --snapshots and --dumps the
reports of paths.reports are meant. To keep the three for different times, use three commands.
example: prune --keep 90d --reports out/reports --dry-run
    --keep T  how long, as 90d or 12w; default: retention.keep_days
    --reports DIR  published dates, with pages and notes of alerts
    --snapshots DIR  what failed ingests left; the last ingest stays
    --dumps DIR  whole days of the collector's rounds, on this machine
    --dry-run  print what would be removed; remove nothing
    --settings --set --quiet""",
    "completion": """print what a shell reads to complete commands, options and names
In zsh: eval "$(rebalance-audit completion zsh)" in ~/.zshrc, after compinit. In fish:
rebalance-audit completion fish > ~/.config/fish/completions/rebalance-audit.fish
example: completion bash > ~/.local/share/bash-completion/completions/rebalance-audit
    SHELL {bash,zsh,fish}  which shell reads it""",
}
COMMANDS: Mapping[str, str] = {**EVERY_DAY, **OTHERS}
#: Usages where argparse does not say it well.
USAGES: Mapping[str, str] = {
    "what-if": "%(prog)s [--dumps PATH ... | --snapshots DIR] --group G [--topic T] CHANGE ...\n"
    "                               [--format table|json] [--at TIME] [--cluster C]"
    " [--language L]\n"
    "                               [--settings FILE] [--set A.B=C] [--quiet] [-v]",
}
