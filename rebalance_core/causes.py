"""Causes of findings: the faults whose repair makes a finding go away.

A cause is proved by recomputation: the causes of a finding are the single repairs that clear it;
where none does alone, the smallest set that does together; else it is unexplained. A repair may
also clear a finding by moving it to another queue: where another clears it and makes nothing worse,
that one is the cause. Only states with findings pay for it.
"""

from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations

from .findings import AUDITED, Evaluation, Finding, FindingKey, evaluate
from .repairs import REPAIRS, Situation, apply_repairs

#: No repair, alone or together, clears the finding.
UNEXPLAINED = "UNEXPLAINED"
#: The group has no member at all: nothing to recompute.
GROUP_OFFLINE = "GROUP_OFFLINE"

#: Faults that are mended together; one, where it suffices alone.
Cure = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """The cures that clear each finding of a state, and what each cure would leave.

    The faults named in the cures are the finding's causes. ``after`` has the evaluation of the
    repaired state for every cure: the remedy preview.
    """

    cures: dict[FindingKey, tuple[Cure, ...]]
    after: dict[Cure, Evaluation]

    def names(self, finding: Finding) -> tuple[str, ...]:
        """The causes of a finding, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.cures[finding.key])))


def find_causes(situation: Situation, evaluation: Evaluation) -> Causes:
    """The causes of every finding of an evaluated situation.

    Each set of repairs is evaluated at most once, and only those that change something.
    """
    before = _probabilities(evaluation)
    if not before:
        return Causes({}, {})
    if evaluation.processes == 0:
        return Causes(dict.fromkeys(before, ((GROUP_OFFLINE,),)), {})
    applicable = [fault for fault, repair in REPAIRS.items() if repair(situation) is not situation]

    @cache
    def outcome(cure: Cure) -> _Outcome:
        repaired = apply_repairs(situation, cure)
        after = evaluate(repaired.state, repaired.rules)
        left = _probabilities(after)
        # A repair after which nothing can be recomputed has not shown that anything is mended.
        shown = after.coverage == AUDITED and after.processes > 0
        cleared = frozenset(before.keys() - left.keys()) if shown else frozenset()
        mends = all(p <= before.get(key, 0.0) + _ROUNDING for key, p in left.items())
        return _Outcome(cleared, mends, after if cleared else None)

    def cures_of(finding: FindingKey) -> tuple[Cure, ...]:
        alone = tuple((fault,) for fault in applicable if finding in outcome((fault,)).cleared)
        if alone:
            return tuple(cure for cure in alone if outcome(cure).mends) or alone
        for size in range(2, len(applicable) + 1):
            for together in combinations(applicable, size):
                if finding in outcome(together).cleared:
                    return (together,)
        return ((UNEXPLAINED,),)

    cures = {finding: cures_of(finding) for finding in before}
    used = dict.fromkeys(chain.from_iterable(cures.values()))
    proved = (cure for cure in used if cure != (UNEXPLAINED,))
    return Causes(cures, {cure: after for cure in proved if (after := outcome(cure).after)})


#: Sums of the same shares in another order differ by less.
_ROUNDING = 1e-9


def _probabilities(evaluation: Evaluation) -> dict[FindingKey, float]:
    return {finding.key: finding.probability for finding in evaluation.findings}


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The effect of a cure: the findings that it clears, and whether it leaves no queue worse off.

    No finding is new then, and none is likelier. ``after`` is kept where it clears any.
    """

    cleared: frozenset[FindingKey]
    mends: bool
    after: Evaluation | None
