"""The names of pages in memory."""

from otterwiki_semantic.content.pages import title_and_path_words
from otterwiki_semantic.storage.page_names import PageNames


def names(*pages: tuple[int, str, str], known: PageNames | None = None, left: set[int] | None = None) -> PageNames:
    added = [(number, path, path.lower(), title_and_path_words(title, path, "en")) for number, path, title in pages]
    numbers = {number for number, _, _ in pages} | (left or set())
    return (known or PageNames()).updated(added, numbers, {"team/holidays": 3})


def test_a_change_gives_the_same_names_as_reading_all_pages() -> None:
    before = names((1, "Team/Holidays", "Holidays"), (2, "Server", "The server"), (3, "Gone", "Holidays in Rome"))
    after = names((4, "Server", "Holiday server"), (5, "New", "New holidays"), known=before, left={1})
    whole = names((1, "Team/Holidays", "Holidays"), (4, "Server", "Holiday server"), (5, "New", "New holidays"))
    words = frozenset({"holiday", "server"})
    for path in ("Team/Holidays", "Server", "Gone", "New"):
        assert after.share(path, words) == whole.share(path, words)
        assert after.title_words(path) == whole.title_words(path)
        assert after.has_any(path, words) == whole.has_any(path, words)
    assert 0 < after.share("New", words) < after.share("Team/Holidays", words) == 1
    assert not after.has_any("Gone", words)
    assert before.has_any("Gone", words)


def test_links_are_counted_by_the_folded_path() -> None:
    found = names((1, "Team/Holidays", "Holidays"), (2, "Server", "The server"))
    assert (found.incoming_links("Team/Holidays"), found.incoming_links("Server"), found.incoming_links("Gone")) == (3, 0, 0)
