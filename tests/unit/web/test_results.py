"""The menus of filters, and why a passage has its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from otterwiki_semantic.core.records import Answer, Correction, Explanation, Facets, Freshness, RetrieverScore, TotalHits
from otterwiki_semantic.web.pages import results
from otterwiki_semantic.web.pages.results import filter_menus, filter_name, marked_name, passage_excerpt, reasons, results_view
from tests.support.hits import make_hit

INDEX = Freshness("commit", "commit", 0)


def answer(*days: int, **facets: dict[str, int]) -> Answer:
    """Return an answer with pages that were changed some days ago."""
    today = datetime.now(UTC)
    hits = tuple(make_hit(path=f"p{at}", updated=(today - timedelta(days=age)).isoformat()) for at, age in enumerate(days))
    found = Facets(**{"category": {}, "tag": {}, "path": {}, **facets})
    total = TotalHits(len(hits), "eq")
    return Answer(query="q", total=len(hits), total_hits=total, confident=True, index=INDEX, results=hits, facets=found)


def test_a_filter_is_offered_only_if_it_narrows() -> None:
    menus = filter_menus(answer(0, 0, 0, path={"all/": 3, "some/": 1}, tag={"none": 0}), [])
    assert [(menu.name, [choice.text for choice in menu.choices]) for menu in menus] == [("path", ["Folder", "some/ (1)"])]


def test_an_age_is_offered_if_some_pages_are_older() -> None:
    *_, menu = filter_menus(answer(1, 20, 400), [])
    offered = [choice.text for choice in menu.choices]
    assert (menu.name, offered) == ("updated_since", ["Changed", "Past week", "Past month", "Past year"])
    assert filter_menus(answer(400, 500), []) == []


def test_a_filter_in_use_stays_in_its_place_and_another_tag_can_be_added() -> None:
    chosen = [("tag", "a"), ("tag", "c"), ("path", "all/"), ("updated_since", "2020-01-01")]
    menus = filter_menus(answer(0, 400, tag={"a": 2, "b": 1}, path={"all/some/": 1}), chosen)
    assert [(menu.choices[0].text, [choice.text for choice in menu.choices[1:]], menu.others) for menu in menus] == [
        ("Folder", ["Folder: all/"], []),
        ("Tag", ["Tag: a"], ["c"]),
        ("Tag", ["Tag: c"], ["a"]),
        ("Tag", ["b (1)"], ()),
        ("Changed", ["Changed: since 1 Jan 2020"], []),
    ]
    assert [[choice.is_chosen for choice in menu.choices] for menu in menus[3:]] == [[False, False], [False, True]]


def test_the_menu_of_a_filter_in_use_offers_other_values() -> None:
    last_week, folder = (datetime.now(UTC) - timedelta(days=7)).date().isoformat(), ("path", "one/")
    age = ("updated_since", last_week)
    without = {folder: answer(0, 400, path={"one/": 1, "two/": 1}), age: answer(0, 20, 400)}
    menus = filter_menus(answer(0), [folder, age], without)
    assert [[choice.text for choice in menu.choices] for menu in menus] == [
        ["Folder", "Folder: one/", "two/ (1)"],
        ["Changed", "Changed: past week", "Past month", "Past year"],
    ]


def test_a_filter_in_use_is_named() -> None:
    last_week = (datetime.now(UTC) - timedelta(days=7)).date().isoformat()
    filters = [("path", "all/"), ("updated_since", last_week), ("updated_since", "2020-01-01")]
    assert [filter_name(*each) for each in filters] == ["Folder: all/", "Changed: past week", "Changed: since 1 Jan 2020"]


def test_the_two_main_reasons_are_words() -> None:
    why = Explanation(RetrieverScore(2, 0.5), RetrieverScore(1, 3.0), 0.5, 0.0, "score", 0.6, 0.1, names=0.2)
    snippet = "[Cistern > Float] The float shows the level."
    hit = make_hit(explain=why, snippet=snippet, title="Cistern", section_path=("Cistern", "Float"), highlights=((1, 8),))
    assert reasons(hit, "level of a cistern") == ("words in the page title", "contains “Cistern”")
    in_heading = msgspec.structs.replace(hit, highlights=((11, 16),))
    assert reasons(in_heading, "float") == ("words in a heading", "contains the word")
    without_names = msgspec.structs.replace(hit, explain=msgspec.structs.replace(why, names=0.0))
    assert reasons(without_names, "level of water") == ("contains “Cistern”", "2nd closest in meaning")
    assert reasons(make_hit(), "level of water") == ()
    of_title = msgspec.structs.replace(hit, explain=msgspec.structs.replace(why, rule="exact title"))
    assert reasons(of_title, "the cistern") == ("title matches", "contains “Cistern”")


def test_the_words_of_a_title_that_match_are_marked() -> None:
    snippet, title = "[Home automation] A home.", "Home automation"
    hit = make_hit(snippet=snippet, prefix_length=18, title=title, highlights=((6, 16), (20, 24)))
    marked = [(span.text, span.is_match) for span in marked_name(hit, hit.title)]
    assert marked == [("Home ", False), ("automation", True), ("", False)]


def test_a_trail_stands_above_the_first_passage_of_its_section_and_is_cut_in_the_middle() -> None:
    one, two = (make_hit(section_path=("Cistern", *names)) for names in (("Float", "Level", "Wire", "Dye"), ("Float",)))
    assert [results.section_trail(*pair) for pair in ((two, one), (two, two))] == [("Float",), ()]
    assert results.short_trail(results.section_trail(one)) == ("Float", "…", "Dye")
    assert [results.short_path(each) for each in ("a/b/c/d/", "a/b/c/d", "a/b/c/")] == ["a/…/d/", "a/…/d", "a/b/c/"]


def test_an_excerpt_ends_with_the_section_that_answers_best() -> None:
    snippet = "[Garden > Winter] Close the tap.\n\nCistern\n\nThe float shows the level.\n\nPlan\n\nWater at night."
    best = (snippet.index("The float"), snippet.index("\n\nPlan"))
    matches = tuple((snippet.index(word), snippet.index(word) + len(word)) for word in ("tap", "Water"))
    hit = make_hit(
        snippet=snippet, prefix_length=18, headings=("Winter", "Cistern", "Plan"), best_sentence=best, highlights=matches
    )
    (line,) = passage_excerpt(hit)
    assert [span.text for span in line.spans] == ["The float shows the level."]


def test_an_excerpt_begins_after_the_heading_that_its_passage_begins_with() -> None:
    hit = make_hit(snippet="[Garden] Winter\n\nClose the tap.", prefix_length=9, headings=("Winter",), section="Winter")
    (line,) = passage_excerpt(hit)
    assert [span.text for span in line.spans] == ["Close the tap."]


def test_the_excerpt_of_a_passage_of_headings_has_them_all() -> None:
    hit = make_hit(snippet="[Garden] Winter\n\nPlan", prefix_length=9, headings=("Winter", "Plan"), section="Plan")
    (line,) = passage_excerpt(hit)
    assert "".join(span.text for span in line.spans) == "Winter. Plan"


def test_an_empty_result_says_whether_it_is_filtered() -> None:
    assert results_view(answer(), answer(), is_filtered=True)["summary"] == "Nothing with these filters seems to be about this."
    assert results_view(answer(), answer(), is_filtered=False)["summary"] == "Nothing in this wiki seems to be about this."


def test_corrections_are_told_first_and_once() -> None:
    corrections = (Correction("bakcup", "backup"), Correction("polcy", "policy"))
    whole, found = (
        msgspec.structs.replace(answer(), **each) for each in ({"corrections": corrections}, {"results": [make_hit()]})
    )
    shown = [results_view(each, whole, is_filtered=False, narrower="backup") for each in (found, whole)]
    assert [each["summary"] for each in (results_view(found, whole, is_filtered=False), *shown)] == [
        "Also searched for “backup”, “policy”. 1 passage on 1 page",
        "Also searched for “policy”. Nothing matches all the words. Results for “backup”: 1 passage on 1 page",
        "Also searched for “backup”, “policy”. Nothing in this wiki seems to be about this.",
    ]


def test_a_page_is_listed_once() -> None:
    hits = make_hit(path="a", relevant=True), make_hit(path="a", relevant=False), make_hit(path="b", relevant=False)
    view = results_view(msgspec.structs.replace(answer(), results=hits), answer(), is_filtered=False)
    assert [[page[0].path for page in view[name]] for name in ("found", "misses")] == [["a"], ["b"]]


def test_the_excerpt_of_a_passage_shows_the_only_word_that_matches() -> None:
    text = "[Page > Part] Nothing easier. Run /backup/local at night." + " It is long." * 30 + " Compare before you copy."
    words = [(text.index(word), text.index(word) + len(word)) for word in ("backup", "night")]
    best = (text.index("Compare"), len(text))

    def matches(*highlights: tuple[int, int]) -> list[str]:
        hit = make_hit(snippet=text, prefix_length=13, highlights=highlights, best_sentence=best)
        return [span.text for line in passage_excerpt(hit) for span in line.spans if span.is_match]

    assert matches(words[0]) == ["backup"]
    assert matches(*words) == [], "of a question, the sentence that answers it best"
