"""The words by which a text is found, in any language."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmosservice.memory.languages import stem
from cosmosservice.memory.words import names_of, terms_of, words_of


def finds(question: str, text: str) -> bool:
    words = words_of(text)
    return any(not term.said.isdisjoint(words) for term in terms_of(question))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("vacations", "Our vacation was short"),
        ("VACATION", "vacation"),
        ("Where do I work?", "I am working at the harbour"),
        ("cafe", "We met in the café"),
        ("Straße", "Die STRASSE ist gesperrt"),
        ("Welche Hunde haben wir?", "Der Hund schläft, und wir haben Ruhe"),
        ("Hunde", "Hund"),
        ("¿Dónde pasé las vacaciones?", "Las vacaciones las pasé en la playa"),
        ("Quels enfants ?", "C'est un enfant de la ville"),
        ("Какие книги я читал?", "Это была интересная книга, и я её прочитал"),
        ("猫の名前", "うちの猫はタマです"),
        ("私はどこで Python を使う？", "仕事でPythonを使います"),
        ("서울", "저는 서울에서 살아요"),
        ("แมว", "ฉันมีแมวสองตัว"),
        ("हिन्दी", "मुझे हिन्दी पसंद है"),
        ("2011", "The code is 2011"),
        ("cat", "Cat number five"),
        ("ﬁle", "the file"),
    ],
)
def test_a_question_finds_a_text_that_says_it_otherwise(question, text):
    assert finds(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where did I go?", "I did it where you said"),
        ("Was ist das?", "Das ist nicht das, was es war"),
        ("cat", "category"),
        ("", "anything"),
        ("?!", "?!"),
    ],
)
def test_what_says_nothing_finds_nothing(question, text):
    assert not finds(question, text)


def test_an_author_is_asked_for_by_name():
    assert names_of("travel_guide") == ["@guide", "@travel"]
    assert names_of("user") == []
    assert "@guide" in {term.name for term in terms_of("What did the guide say?")}


@given(st.text(max_size=60))
def test_any_text_is_found_by_itself(text):
    words = words_of(text)
    if words:
        assert finds(text, text)
    assert all(isinstance(word, str) and word for word in words)
    "".join(words).encode()  # no halves of surrogate pairs


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Mn", "Nd"]), max_size=20))
def test_case_and_composition_do_not_matter(text):
    import unicodedata

    composed = words_of(unicodedata.normalize("NFC", text))
    assert composed == words_of(unicodedata.normalize("NFD", text))


def test_words_are_stemmed_by_several_threads_at_once():
    """A stemmer keeps the word that it is working on. Services have a thread each."""
    words = [f"{begin}{end}" for begin in "abcdefghkl" for end in ("iveness", "ational", "ings")]
    stem.cache_clear()
    alone = [stem(word, "english") for word in words]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:

            def stem_all(_: int) -> list[str]:
                return [stem.__wrapped__(word, "english") for word in words]

            found = list(threads.map(stem_all, range(40)))
    finally:
        sys.setswitchinterval(switching)
    assert found == [alone] * 40
