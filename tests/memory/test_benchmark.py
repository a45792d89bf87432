"""The labelled set is what the documentation says. Part of it is measured in every test run."""

from __future__ import annotations

from benchmarks.memory.material import users
from benchmarks.memory.measure import measure, of_half, score
from benchmarks.memory.peers import cosmos, in_memory, plain_bm25


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
