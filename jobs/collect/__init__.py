"""nameservers and brokers -> a dump: the admin side of the remoting protocol, read only.

questions.py   what may be asked: nine requests, and no way to ask another
frames.py      a request as bytes, signed by an account, and an answer from them
client.py      one question to one address, one answer or one reason
names.py       what an answer names, as far as it may be asked for
rounds.py      one round: what is asked of whom, and what follows from an answer
turns.py       whose turn it is at each address, what one address may cost, how many names it gives
lines.py       the lines of a round, its troubles, and what was left out
memory.py      what a round leaves for the next one
asked_clients.py   who may be asked for a running info, by all collectors of a user
dump_folder.py   the folder of dumps: a round's file is there whole, or not there
collector.py   round after round, with the figures of each
"""
