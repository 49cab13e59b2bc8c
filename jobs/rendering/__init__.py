"""published tables -> what a person looks at: a page, a ticket.

    published tables -> report (plain values) -> drawings -> text

``report`` builds the values and knows no markup; ``drawings`` turns times and queues into
coordinates; ``page`` writes them down.
"""
