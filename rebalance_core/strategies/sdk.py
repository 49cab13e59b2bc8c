"""SDKs that clients are built on: one strategy name means different arithmetic in each."""

from enum import Enum
from functools import lru_cache

from ..texts import Text

#: MQVersion ordinal of the release that took the blocks of MACHINE_ROOM from the rooms' queues.
_VERSION_4_8_0 = 373


class Sdk(Enum):
    """An SDK whose strategies are not all those of the current Java client; the value names it.

    Source: RocketMQ 4.7.1 and 5.3.3; rocketmq-client-go 2.1 (``consumer/strategy.go``);
    rocketmq-client-cpp 2.2 (``Rebalance``, which makes ``AllocateMQAveragely`` and nothing else).
    """

    #: The current one. SDKs that are not listed here are taken to be like it.
    JAVA = "Java"
    JAVA_BEFORE_4_8_0 = Text("Java before 4.8.0")
    GO = "client-go"
    #: Also what is built over it, such as the Python binding: it says CPP of itself.
    CPP = "client-cpp"

    @property
    def sorts_bytewise(self) -> bool:
        """True if it compares names by the bytes of UTF-8, where Java compares UTF-16."""
        return self in (Sdk.GO, Sdk.CPP)

    def strategy_name(self, name: str) -> str:
        """The name of what it computes where the strategy of that name is asked for.

        >>> Sdk.GO.strategy_name("MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE")
        'AVG'
        >>> Sdk.CPP.strategy_name("CONSISTENT_HASH"), Sdk.JAVA.strategy_name("CONSISTENT_HASH")
        ('AVG', 'CONSISTENT_HASH')
        """
        if self is Sdk.CPP or (self is Sdk.GO and name.startswith("MACHINE_ROOM_NEARBY")):
            return "AVG"
        return name


@lru_cache(maxsize=1_024)
def sdk_of(language: str | None, version: int | None) -> Sdk:
    """The SDK of a connection that gives this LanguageCode and this MQVersion ordinal.

    >>> sdk_of("JAVA", 371), sdk_of("JAVA", 373), sdk_of("GO", 373)
    (<Sdk.JAVA_BEFORE_4_8_0: 'Java before 4.8.0'>, <Sdk.JAVA: 'Java'>, <Sdk.GO: 'client-go'>)
    """
    if language == "JAVA" and version is not None and version < _VERSION_4_8_0:
        return Sdk.JAVA_BEFORE_4_8_0
    return {"GO": Sdk.GO, "CPP": Sdk.CPP}.get(language or "", Sdk.JAVA)
