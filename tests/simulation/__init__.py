"""A small RocketMQ in one process, whose truth does not come from the audit.

It makes dumps as a collector would, and the truth beside them: which process could read which
queue at each moment. ``make truth`` audits many such fleets and prints how much of what the audit
says is so, and how much of what is so the audit says.

Only the arithmetic of the strategies is the project's (``rebalance_core.strategies``, held against
golden answers of the Java classes); ``scoring`` calls the command. All else is written anew.

**What is simulated**, by the numbers of RocketMQ 4.9 and 5.1:

- brokers: a table of channels for the group. A channel comes with a heartbeat, goes with an
  orderly stop or a closed connection, or is dropped at the first scan (each 10 s) that finds it
  silent for 120 s (``ConsumerManager.scanNotActiveChannel``). Clients are notified of who comes
  and goes, but not of who is dropped. The group's subscriptions are those of the last heartbeat.
- nameservers: each has the routes of the brokers that register with it.
- clients: heartbeats each 30 s to every broker of their routes, routes each 30 s, a rebalance each
  20 s, at a notification and at the start. For each topic a rebalance asks one random broker of the
  route for the list of members, and divides the queues by its strategy. If the broker cannot be
  asked, or knows no member, the client keeps what it has. If the list lacks the client, it drops
  everything. A queue is added only if its broker answers, and kept however long it does not. A
  client stays with one nameserver until that fails. Where a route has no master, Java's clients
  read from a slave and Go's do not.
- locks of who consumes in order: asked of the master alone, each 20 s and before a queue is added;
  the master keeps them by client id for 60 s, in its memory; the client handles nothing of a queue
  whose lock it got over 30 s ago, and keeps it in its table.
- masters: stop in order or die, and then nameservers have them for 120 s more; with a slave, one
  that acts as a master, one that becomes the master, or without. Nothing is written to a broker
  without a master. Offsets may be lost at a restart, or be those of before after a failover.
- a process can stop in order, be killed with or without a closed connection, freeze, block in its
  listener, be suspended, not finish one message, shut its consumer and run on, be refused, come
  back under the same or another id, connect anew, lose one broker, and fail to follow new routes.
- collectors: rounds that take their time, answers that are missing, two collectors with two
  nameservers, with and without heartbeats, running infos and offsets.

- groups behind a proxy: no broker lists them. What they do is what other clients do.
- who was given its queues by ``assign()``, and strategies that nobody else knows.
- static topics: clients hold logical queues, brokers count by physical ones. A controller that
  makes a slave the master. Old Go clients that commit nothing over what a filter leaves out.
- a broker without the offsets of a group that is away: it tells nothing of it, and the group reads
  from the first message or from the last one when it is back.

**What is not simulated**: broadcasting, what POP delivers, what a proxy divides, static topics that
move, pulls that a broker refuses because the subscription just left its table, slow garbage
collections, clocks that differ, what a slave has not copied, and retries of one second (5.2 and
later). Messages are
numbers: they come steadily, and an owner who can read a queue catches up within seconds.

    clock       events in their order
    servers     brokers and nameservers
    clients     consumer processes
    truth       who could read which queue, and when
    world       what a fleet is made of
    collectors  dump lines
    situations  what goes wrong, each a small function
    beyond_lists  more of them: what lists and routes alone do not decide
    fleets      one fleet from a seed, simulated
    scoring     definitions: true rows, spells, what dumps can show
    remedies    what operators do about what is reported
    score       the command: fleets, one audit, figures
    days        a command: a day of a cluster with several groups
"""
