"""The languages with stemming, by ISO 639-1 code."""

from __future__ import annotations

_NAMES = (
    "ar arabic, ca catalan, cs czech, da danish, de german, el greek, en english, eo esperanto, es spanish, et estonian",
    "eu basque, fa persian, fi finnish, fr french, ga irish, hi hindi, hu hungarian, hy armenian, id indonesian, it italian",
    "lt lithuanian, ne nepali, nl dutch, no norwegian, pl polish, pt portuguese, ro romanian, ru russian, sr serbian",
    "sv swedish, ta tamil, tr turkish, yi yiddish",
)
SNOWBALL: dict[str, str] = dict(name.split() for line in _NAMES for name in line.split(", "))
ENGLISH = "en"
