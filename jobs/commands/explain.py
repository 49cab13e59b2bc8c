"""``explain``: who takes which queue of a topic, and why."""

from ..arguments import Options, Parser
from .question import add_question, moments_of, say_when

EXAMPLE = "explain --dumps dumps/ --group G_ORDER --topic ORDER --at 2026-11-20T10:00:00Z"


def add_arguments(command: Parser) -> None:
    """Adds the options of the command."""
    add_question(command, "--topic T!  the topic")


def run(args: Options) -> int:
    """Does what the options say; returns the exit code."""
    from ..output import say
    from ..pipeline.explain import explain_moment
    from .common import settings_of, text_width

    settings = settings_of(args)
    moments = moments_of(args, settings)
    say(explain_moment(moments[0], settings, text_width()))
    say_when(args, moments)
    return 0
