"""What a dashboard shows."""

from __future__ import annotations

import gc

import pytest
from google.adk.sessions.base_session_service import GetSessionConfig

from cosmosservice import CosmosSessionService
from cosmosservice.errors import StaleSessionError
from tests.support.adk import event

REQUEST_CHARGE = "azure.cosmosdb.client.operation.request_charge"


def total(points, **wanted):
    """The sum over the data points that have these attributes, dots written as underscores."""
    return sum(
        point.value if hasattr(point, "value") else point.sum for point in _matching(points, wanted)
    )


def count(points, **wanted):
    return sum(point.count for point in _matching(points, wanted))


def _matching(points, wanted):
    return [
        point
        for point in points
        if all(
            {k.replace(".", "_"): v for k, v in point.attributes.items()}.get(name) == value
            for name, value in wanted.items()
        )
    ]


async def use(service):
    """A little of everything."""
    session = await service.create_session(app_name="app", user_id="ann", state={"user:a": 1})
    await service.append_event(session, event("hello", delta={"n": 1, "app:b": 2}))
    names = {"app_name": "app", "user_id": "ann", "session_id": session.id}
    await service.get_session(**names)
    await service.get_session(**names, config=GetSessionConfig(num_recent_events=1))
    await service.list_sessions(app_name="app", user_id="ann")
    await service.list_sessions(app_name="app")
    await service.delete_session(**names)
    await service.flush()


async def test_every_request_unit_that_is_charged_is_measured(emulator, seen):
    charges = []
    async with CosmosSessionService.embedded(emulator, on_request_charge=charges.append) as service:
        await use(service)
        charged = [each for each in emulator.requests if each.resource == "docs"]
        measured = seen.measured()[REQUEST_CHARGE]
        by_account = sum(each.charge for each in charged)
        assert total(measured) == pytest.approx(by_account)
        assert sum(charge.request_units for charge in charges) == pytest.approx(by_account)


async def test_requests_are_counted_by_status(service, seen):
    session = await service.create_session(app_name="app", user_id="ann", session_id="s")
    seen.forget()
    await service.append_event(session, event("hello"))
    points = seen.measured()["db.client.operation.duration"]
    assert count(points) == 1
    assert (
        count(
            points,
            db_response_status_code="201",
            db_operation_name="create_item",
            db_collection_name="events",
            cosmosservice_operation="append_event",
        )
        == 1
    )


async def test_operations_are_timed_by_outcome(service, seen):
    session = await service.create_session(app_name="app", user_id="ann", session_id="s")
    other = await service.get_session(app_name="app", user_id="ann", session_id="s")
    await service.append_event(session, event("first"))
    with pytest.raises(StaleSessionError):
        await service.append_event(other, event("second"))
    points = seen.measured()["cosmosservice.operation.duration"]
    assert count(points, cosmosservice_operation="append_event") == 2
    assert count(points, error_type="StaleSessionError") == 1


async def test_conflicts_are_counted_refused_or_rebased(emulator, seen):
    for mode, outcome in (("raise", "refused"), ("rebase", "rebased")):
        async with CosmosSessionService.embedded(emulator, on_conflict=mode) as service:
            session = await service.create_session(app_name="app", user_id="ann", session_id=mode)
            other = await service.get_session(app_name="app", user_id="ann", session_id=mode)
            await service.append_event(session, event("first"))
            try:
                await service.append_event(other, event("second"))
            except StaleSessionError:
                assert mode == "raise"
        points = seen.measured()["cosmosservice.conflicts"]
        assert total(points) == 1
        assert total(points, cosmosservice_conflict_outcome=outcome) == 1


async def test_events_that_another_process_left_behind_are_repairs(emulator, seen):
    async with (
        CosmosSessionService.embedded(emulator) as writer,
        CosmosSessionService.embedded(emulator) as reader,
    ):
        session = await writer.create_session(app_name="app", user_id="ann", session_id="s")
        await writer.append_event(session, event("one"))
        await writer.append_event(session, event("two"))
        assert "cosmosservice.repairs" not in seen.measured()
        await reader.get_session(app_name="app", user_id="ann", session_id="s")
        await reader.flush()
        assert total(seen.measured()["cosmosservice.repairs"]) == 2
        await writer.append_event(session, event("three"))
        await writer.flush()
        assert "cosmosservice.repairs" not in seen.measured()


async def test_late_session_documents_are_counted_and_their_lag_is_measured(service, seen):
    late = "cosmosservice.projection.late"
    session = await service.create_session(app_name="app", user_id="ann")
    gc.collect()  # services that other tests did not close
    others = total(seen.measured().get(late, []))
    await service.append_event(session, event("hello"))
    assert total(seen.measured()[late]) == others + 1
    await service.flush()
    measured = seen.measured()
    assert total(measured[late]) == others
    assert count(measured["cosmosservice.projection.lag"]) == 1


async def test_the_cache_counts_hits_and_misses(emulator, seen):
    lookups = "cosmosservice.cache.lookups"
    async with CosmosSessionService.embedded(emulator) as service:
        await service.create_session(app_name="app", user_id="ann", session_id="s")
        await service.get_session(app_name="app", user_id="ann", session_id="s")
        seen.measured()
        await service.get_session(app_name="app", user_id="ann", session_id="s")
        assert total(seen.measured()[lookups], cosmosservice_cache_hit=False) == 0
    async with CosmosSessionService.embedded(emulator) as service:
        await service.get_session(app_name="app", user_id="ann", session_id="s")
        assert total(seen.measured()[lookups], cosmosservice_cache_hit=False) > 0


async def test_retries_are_counted(service, emulator, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    emulator.faults.throttle(retry_after_ms=1, operation="create", container="events", times=2)
    await service.append_event(session, event("hello"))
    assert total(seen.measured()["cosmosservice.retries"]) == 2
