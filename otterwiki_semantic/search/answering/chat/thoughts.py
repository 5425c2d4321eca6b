"""What a reasoning model thinks before it answers, in the text itself, is no part of the answer."""

from __future__ import annotations

_OPENINGS = ("<think>", "<thinking>", "<reasoning>")
_LONGEST = max(map(len, _OPENINGS))


class ThoughtFilter:
    """Leaves out thoughts at the beginning of a text, however it is divided among calls."""

    def __init__(self) -> None:
        self._waiting = ""
        self._closing: str | None = None
        """What ends the thoughts that have begun."""
        self._is_open = True
        """Whether thoughts may begin here."""

    def feed(self, text: str) -> str:
        """Return what of a text is no thought; some of it may come with the next call."""
        if not self._is_open:
            return text
        self._waiting += text
        while True:
            if self._closing is not None:
                _, found, rest = self._waiting.partition(self._closing)
                if not found:
                    self._waiting = self._waiting[-len(self._closing) :]
                    return ""
                self._waiting, self._closing = rest, None
            begun = self._waiting.lstrip()
            opening = next((each for each in _OPENINGS if begun.lower().startswith(each)), None)
            if opening is None:
                break
            self._waiting, self._closing = begun[len(opening) :], f"</{opening[1:]}"
        if len(begun) < _LONGEST and any(each.startswith(begun.lower()) for each in _OPENINGS):
            return ""
        self._is_open = False
        self._waiting, shown = "", self._waiting
        return shown
