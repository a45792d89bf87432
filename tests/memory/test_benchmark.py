"""The labelled set is what the documentation says. Part of it is measured in every test run."""

from __future__ import annotations

import json

from benchmarks.memory.long import long_users
from benchmarks.memory.material import users
from benchmarks.memory.measure import by_session, measure, of_half, score
from benchmarks.memory.peers import cosmos, in_memory, plain_bm25
from benchmarks.memory.public import conversations


def test_the_set_has_questions_in_several_languages_with_answers_that_exist():
    everybody = users()
    questions = [question for user in everybody for question in user.questions]
    events = {
        event.id for user in everybody for session in user.sessions for event in session.events
    }
    assert len(questions) >= 300
    assert len({question.language for question in questions}) == 5
    assert all(question.answers and question.answers <= events for question in questions)
    halves = [question.half for question in questions]
    assert 0.4 < halves.count("report") / len(halves) < 0.6


async def test_more_is_found_than_by_counting_words():
    some = [user for user in users() if user.user_id in ("german-0", "japanese-0", "spanish-0")]
    hits = {
        name: score(of_half(await measure(opened, some), "report")).hit
        for name, opened in (("ours", cosmos()), ("bm25", plain_bm25), ("adk", in_memory))
    }
    assert hits["ours"] >= 1.4 * hits["bm25"]
    assert hits["ours"] >= 1.8 * hits["adk"]


def test_old_facts_of_a_long_history_are_in_its_first_tenth():
    for user in long_users(400):
        events = [event.id for session in user.sessions for event in session.events]
        assert len(events) >= 400
        assert len({question.text for question in user.questions}) == len(user.questions)
        old = [each for each in user.questions if each.category == "old"]
        assert old
        sessions = {answer.rpartition("-")[0] for each in old for answer in each.answers}
        first = {session.id for session in user.sessions[: len(user.sessions) // 10]}
        assert sessions <= first


async def test_conversations_of_ones_own_are_asked_when_they_had_come_so_far(tmp_path):
    def said(session, *texts):
        turns = [
            {"id": f"{session}.{at}", "author": "user", "text": text}
            for at, text in enumerate(texts)
        ]
        return {"id": session, "turns": turns}

    sessions = [said("s1", "The dentist is in Elm Street."), said("s2", "The dentist moved.")]
    questions = [
        {"text": "Where is my dentist?", "answers": ["s1"], "after": "s1"},
        {"text": "Did the dentist move?", "answers": ["s2.0"]},
    ]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"sessions": sessions, "questions": questions}]), "utf-8")
    (user,) = conversations(path)
    first, second = await measure(plain_bm25, [user])
    assert first.found == ("mine-0/s1.0",)
    assert set(second.found) == {"mine-0/s1.0", "mine-0/s2.0"}
    session_of = {event.id: each.id for each in user.sessions for event in each.events}
    assert score(by_session([first, second], session_of), 1).hit == 1
