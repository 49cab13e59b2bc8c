"""Words for codes of the tables within a sentence."""

import re

from rebalance_core.english import joined
from rebalance_core.texts import Text, fill

#: Texts in place of the names of one group where several are shown, by slot.
_OF_SEVERAL = {
    "this_client": Text("the client"),
    "these_clients": Text("the clients"),
    "these_brokers": Text("the brokers"),
    "this_group": "GROUP",
    "this_topic": Text("the topic"),
}
#: The words of a code: the code is its words in capitals.
_WORDS = {
    words.upper().replace(" ", "_"): words
    for words in (
        *(Text("certain"), Text("possible"), Text("orphaned"), Text("duplicate"), Text("stalled")),
        *(Text("audited"), Text("broadcasting"), Text("not subscribed"), Text("no topic")),
        *(Text("no broker answered"), Text("no readable queue"), Text("no group")),
        *(Text("too many queues"), Text("route not known"), Text("strategy not known")),
        *(Text("allocation fails"), Text("shared by broker"), Text("queues chosen")),
        *(Text("NEW"), Text("PERSISTING"), Text("RESOLVED"), Text("NOT AUDITED")),
    )
}


def in_words(code: str) -> str:
    """A coverage, a certainty, a kind of finding or a status; one of a later version is its name.

    >>> in_words("NO_BROKER_ANSWERED"), in_words("A_LATER_ONE")
    ('no broker answered', 'a later one')
    """
    return _WORDS.get(code) or code.replace("_", " ").lower()


def begin(text: str) -> str:
    """The text as it begins a sentence: with a capital, which English alone needs.

    A name stays as it is written.

    >>> begin(Text("restart {client}", client="a")), begin(Text("{broker} is gone", broker="b"))
    ('Restart a', 'b is gone')
    """
    return text if _begins_with_name(text) else _changed(text, text[:1].upper() + text[1:])


def _begins_with_name(text: object) -> bool:
    """True if the first word is a value that is no text of ours."""
    if not isinstance(text, Text):
        return False
    slot = re.match(r"\{(\w+)", text.template)
    value = text.values.get(slot[1]) if slot else None
    return _begins_with_name(value) if isinstance(value, Text) else isinstance(value, str)


def _changed(text: str, english: str) -> str:
    return Text.of(english, text.template, text.values) if isinstance(text, Text) else english


def in_general(text: str) -> str:
    """The text as it is for every group: without the names of one, which its evidence has.

    >>> in_general(Text("restart {this_client}", this_client="a"))
    'restart the client'
    """
    if not isinstance(text, Text):
        return text
    values = {
        slot: _OF_SEVERAL.get(slot) or (in_general(value) if isinstance(value, str) else value)
        for slot, value in text.values.items()
    }
    return Text.of(fill(text.template, values), text.template, values)


def names_of_slots(text: str) -> dict[str, str]:
    """The names that ``in_general`` leaves out of a text, by slot, in their order.

    >>> names_of_slots(Text("{what} it", what=Text("restart {this_client}", this_client="a")))
    {'this_client': 'a'}
    """
    names: dict[str, str] = {}
    for slot, value in text.values.items() if isinstance(text, Text) else ():
        names |= {slot: str(value)} if slot in _OF_SEVERAL else names_of_slots(value)
    return names


def sentences(parts: list[str]) -> str:
    """Sentences one after the other.

    >>> sentences(["Nothing was found.", "Every line was understood."])
    'Nothing was found. Every line was understood.'
    """
    return joined(parts, "{before} {next}")
