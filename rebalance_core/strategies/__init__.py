"""RocketMQ's allocation strategies, bit for bit (checked against the Java classes of 5.3.x).

Every consumer of a group sorts the queues of a topic and the client ids of the group and asks
its strategy which queues it takes. Nothing else decides who consumes what. What other SDKs and
older clients compute under the same names are separate strategies (``Sdk``).
"""
