"""What a trace shows."""

from __future__ import annotations

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.runners import Runner
from google.genai import types
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from cosmosservice import (
    CosmosAccount,
    CosmosArtifactService,
    CosmosMemoryService,
    CosmosSessionService,
)
from cosmosservice.errors import (
    StaleSessionError,
    StateUpdatePendingError,
    ThrottledError,
    UnavailableError,
)
from tests.support.adk import event
from tests.support.scripted import ScriptedModel, user

CHARGE = "azure.cosmosdb.operation.request_charge"


async def test_an_operation_is_a_span_that_follows_the_conventions(service, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    await service.append_event(session, event("hello"))
    span = seen.span("append_event")
    assert span.name == "append_event events"
    assert span.status.status_code is StatusCode.UNSET
    attributes = dict(span.attributes)
    assert attributes.pop(CHARGE) > 0
    assert attributes == {
        "db.system.name": "azure.cosmosdb",
        "db.namespace": "adk",
        "db.collection.name": "events",
        "db.operation.name": "append_event",
        "db.response.status_code": "201",
        "cosmosservice.requests": 1,
        "cosmosservice.retries": 0,
    }


async def test_its_requests_are_client_spans_below_it(service, seen):
    session = await service.create_session(app_name="app", user_id="ann", session_id="s")
    await service.get_session(app_name="app", user_id="ann", session_id=session.id)
    operation = seen.span("get_session")
    requests = seen.below(operation)
    assert sorted(span.name for span in requests) == [
        "query_items events",
        "read_item sessions",
        "read_item sessions",
        "read_item sessions",
    ]
    assert {span.kind for span in requests} == {SpanKind.CLIENT}
    charges = sum(span.attributes[CHARGE] for span in requests)
    assert operation.attributes[CHARGE] == pytest.approx(charges, abs=0.01)
    for span in requests:
        assert operation.start_time <= span.start_time <= span.end_time <= operation.end_time
        assert span.attributes["cosmosservice.operation"] == "get_session"
        # A state document that does not exist yet is not an error.
        assert span.status.status_code is StatusCode.UNSET
        assert "error.type" not in span.attributes


async def test_the_first_operation_shows_how_long_connecting_took(service, seen):
    await service.create_session(app_name="app", user_id="ann")
    connecting = seen.span("connect")
    assert connecting.parent.span_id == seen.span("create_session").context.span_id


async def test_operations_are_below_the_spans_of_adk(service, seen):
    agent = LlmAgent(name="echo", model=ScriptedModel(replies=["Hello, Ann."]))
    runner = Runner(app_name="app", agent=agent, session_service=service)
    session = await service.create_session(app_name="app", user_id="ann")
    async for _ in runner.run_async(
        user_id="ann", session_id=session.id, new_message=user("Hello.")
    ):
        pass
    by_id = {span.context.span_id: span for span in seen.all_spans}
    appends = seen.spans("append_event")
    assert len(appends) == 2
    for span in appends:
        ancestors = []
        while span.parent is not None:
            span = by_id[span.parent.span_id]
            ancestors.append(span)
        assert ancestors
        assert ancestors[-1].instrumentation_scope.name == "gcp.vertex.agent"


async def test_a_refused_append_says_why(service, seen):
    session = await service.create_session(app_name="app", user_id="ann", session_id="s")
    other = await service.get_session(app_name="app", user_id="ann", session_id="s")
    await service.append_event(session, event("first"))
    with pytest.raises(StaleSessionError):
        await service.append_event(other, event("second"))
    span = seen.spans("append_event")[-1]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "StaleSessionError"
    assert span.attributes["db.response.status_code"] == "409"


async def test_a_session_that_exists_is_a_conflict(service, seen):
    await service.create_session(app_name="app", user_id="ann", session_id="s")
    with pytest.raises(AlreadyExistsError):
        await service.create_session(app_name="app", user_id="ann", session_id="s")
    span = seen.spans("create_session")[-1]
    assert span.attributes["db.response.status_code"] == "409"
    assert span.attributes["error.type"] == "AlreadyExistsError"


async def test_throttled_requests_are_counted_although_the_sdk_sends_them_again(
    service, emulator, seen
):
    session = await service.create_session(app_name="app", user_id="ann")
    emulator.faults.throttle(retry_after_ms=1, operation="create", container="events", times=2)
    await service.append_event(session, event("hello"))
    operation = seen.span("append_event")
    (request,) = seen.below(operation)
    assert operation.attributes["cosmosservice.retries"] == 2
    assert request.attributes["cosmosservice.retries"] == 2
    assert request.attributes["db.response.status_code"] == "201"


async def test_an_outage_is_an_error_of_the_request_and_of_the_operation(service, emulator, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    emulator.faults.fail(429, substatus=3200, operation="create", container="events", times=None)
    with pytest.raises((ThrottledError, UnavailableError)):
        await service.append_event(session, event("hello"))
    operation = seen.span("append_event")
    request = seen.below(operation)[-1]
    assert request.status.status_code is StatusCode.ERROR
    assert request.attributes["error.type"] == "429"
    assert request.attributes["azure.cosmosdb.response.sub_status_code"] == 3200
    assert operation.attributes["db.response.status_code"] == "429"
    assert operation.attributes["azure.cosmosdb.response.sub_status_code"] == 3200
    assert operation.attributes["error.type"] == "ThrottledError"


async def test_an_event_whose_user_state_could_not_be_merged_is_an_error(service, emulator, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    emulator.faults.fail(403, container="sessions", operation="create")
    with pytest.raises(StateUpdatePendingError):
        await service.append_event(session, event("hello", delta={"user:name": "Ann"}))
    span = seen.span("append_event")
    assert span.attributes["error.type"] == "StateUpdatePendingError"
    assert span.attributes["db.response.status_code"] == "403"


async def test_the_session_document_is_written_in_a_trace_of_its_own_with_a_link(service, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    await service.append_event(session, event("hello", delta={"count": 1}))
    await service.flush()
    projection = seen.span("project_session")
    assert projection.parent is None
    assert [request.name for request in seen.below(projection)] == ["replace_item sessions"]
    (link,) = projection.links
    causes = {span.context.span_id for span in seen.all_spans}
    assert link.context.span_id in causes


async def test_what_becomes_a_memory_by_itself_is_seen_and_charged(emulator, seen):
    charges = []
    async with CosmosAccount.embedded(emulator, on_request_charge=charges.append) as account:
        memory = CosmosMemoryService(account=account)
        service = CosmosSessionService(account=account, memory=memory)
        session = await service.create_session(app_name="app", user_id="ann")
        await service.append_event(session, event("hello"))
        await service.flush()
        seen.forget()
        charges.clear()
        await service.append_event(session, event("again"))
        await service.flush()
    (stored,) = [span for span in seen.spans("remember") if span.name == "remember memories"]
    assert [span.name for span in seen.below(stored)] == ["create_item memories"]
    above = [span for span in seen.spans("remember") if span.name == "remember events"]
    (handed_over,) = [span for span in above if stored in seen.below(span)]
    (link,) = handed_over.links
    assert link.context.span_id == seen.span("append_event").context.span_id
    (charge,) = [each for each in charges if each.container == "memories"]
    assert charge.operation == "remember"
    assert 0 < charge.request_units == pytest.approx(stored.attributes[CHARGE], abs=0.01)
    points = seen.measured()["azure.cosmosdb.client.operation.request_charge"]
    (point,) = [each for each in points if each.attributes["db.collection.name"] == "memories"]
    assert point.attributes["cosmosservice.operation"] == "remember"
    assert point.sum == pytest.approx(charge.request_units)


async def test_below_a_span_that_is_not_sampled_nothing_is(service, seen):
    await service.create_session(app_name="app", user_id="ann", session_id="s")
    seen.forget()
    context = SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(0))
    with trace.use_span(NonRecordingSpan(context)):
        await service.get_session(app_name="app", user_id="ann", session_id="s")
    assert seen.all_spans == []


async def test_the_account_is_named_unless_it_is_embedded(seen):
    service = CosmosSessionService(
        endpoint="http://127.0.0.1:1/", credential="bm90IGEga2V5", database="adk"
    )
    async with service:
        with pytest.raises(UnavailableError):
            await service.get_session(app_name="app", user_id="ann", session_id="s")
    span = seen.span("get_session")
    assert span.attributes["server.address"] == "127.0.0.1"
    assert span.attributes["server.port"] == 1
    assert span.attributes["error.type"] == "UnavailableError"


async def test_an_artifact_is_in_a_trace_too(emulator, seen):
    async with CosmosArtifactService.embedded(emulator) as artifacts:
        await artifacts.save_artifact(
            app_name="app",
            user_id="ann",
            session_id="s",
            filename="secret plan.txt",
            artifact=types.Part(text="tea"),
        )
    operation = seen.span("save_artifact")
    assert operation.name == "save_artifact artifacts"
    assert operation.attributes[CHARGE] > 0
    assert "create_item artifacts" in [span.name for span in seen.below(operation)]
    assert "secret" not in str([span.to_json() for span in seen.all_spans])


async def test_a_watch_reads_the_change_feed_in_spans(service, seen):
    session = await service.create_session(app_name="app", user_id="ann")
    await service.append_event(session, event("hello"))
    found = [each async for each in service.watch(app_name="app", since="beginning", follow=False)]
    assert len(found) == 1
    assert seen.spans("query_change_feed")
