"""published tables -> what a person looks at: a page, a ticket.

    published tables -> page_values (plain values) -> drawings -> text

``page_values`` builds the values and knows no markup; ``drawings`` turns times and queues into
coordinates; ``page`` writes them down.
"""
