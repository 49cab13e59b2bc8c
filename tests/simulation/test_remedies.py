"""What a remedy does to a fleet, and when a fleet is healthy."""

from __future__ import annotations

from tests.simulation.fleets import draw_fleet
from tests.simulation.remedies import REMEDIES, apply_at_the_end, is_healthy, worth_repairing
from tests.simulation.scoring import SPECIFIC, FaultRow
from tests.simulation.situations import SITUATIONS

SHARED = SITUATIONS["two_processes_with_one_id"]


def row(fault: str, *client_ids: str, severity: str = "WARNING", ongoing: bool = True) -> FaultRow:
    return FaultRow("c", fault, "T", 0, 600_000, client_ids, (), "PERSISTENT", severity, ongoing)


def test_a_fleet_is_healthy_once_its_remedy_is_done_and_not_by_itself() -> None:
    fleet = draw_fleet("shared", [SHARED], 1)
    assert not is_healthy(fleet, fleet.until)
    (client_id,) = {pod.client_id for pod in fleet.pods} - {None}
    assert client_id is not None
    for fault, healthy in (("DUPLICATE_CLIENT_ID", True), ("FLAPPING", False)):
        later = draw_fleet("shared", [SHARED, apply_at_the_end([row(fault, client_id)])], 1)
        assert is_healthy(later, later.until + later.goes_on_for) == healthy


def test_what_is_over_or_harmless_is_not_repaired() -> None:
    faults = [row("A"), row("B", severity="INFO"), row("C", ongoing=False)]
    assert [each.fault for each in worth_repairing(faults)] == ["A"]


def test_every_fault_that_can_be_repaired_has_its_remedy() -> None:
    # These end with the window, or say what was; nothing is to be done with the fleet.
    by_itself = {"FLAPPING", "RECONNECTING", "OFFSETS_WENT_BACK", "UNLISTED_CONSUMER"}
    by_itself.add("OFFSETS_GONE")
    assert set(REMEDIES) == (SPECIFIC - by_itself) | {"GHOST_MEMBER"}
