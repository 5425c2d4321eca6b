"""Whether sentences that their source does not support are called supported, and how many true ones are not.

Both are made by script from the sections of wikis (`--wikis DIR`, a directory of wikis with `pages`; else the demo wiki). The
words that are exchanged are lists of this module's own. The first, third, fifth … wiki in the alphabet were used to write the
check, the others to report; the demo wiki's paraphrases are written by hand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.support.options import ROOT, Options
from benchmarks.support.report import Figure, at_least, at_most, say
from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.core.records import BlockKind
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind
from otterwiki_semantic.search.answering.support import Similarity, unsupported_reason

_SEED = 60
_SECTIONS = 120
"""Sections of a wiki that sentences are taken from."""
_EACH, _ALONE = 60, 150
"""Sentences an operator makes for a wiki: for each of several, and for one alone."""
_ROUNDS = 4
"""How often an operator is given each sentence."""
_MIN_STATEMENTS = 1_000
_WORDS = range(5, 35)
_NAME = re.compile(r"(?<=[a-z,] )(?:[A-Z][\w.-]*[A-Za-z]|\w+[_/.]\w+)(?: [A-Z][\w.-]*[A-Za-z])*")
_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:\.\d+)?(?![\w:/-]|[.,]\d)")
_WORD = re.compile(r"[A-Za-z]{4,}")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_OTHER = _words(
    "about above after again also another because been before being between both could does done down each either "
    "else even ever every from further have having here itself just like many more most much must need only other "
    "others over same shall should since some such than that their them then there these they this those through "
    "thus until upon very well were what when where whether which while whom whose will with within without would "
    "your yours how why who make makes take give want used using however therefore"
)
"""Words that say nothing by themselves."""
_VERB = re.compile(
    r" (?:is|are|was|were|has|have|can|will|should|must|may|does|do|needs|shows|uses|takes|runs|holds|sends|makes) "
)
_PRONOUN = re.compile(
    r"(?:It|They|This|These|That|Those|He|She|There|Here|We|You|If|When|I|it|they|this|these|those|he|she|we|you)\b"
)

_ANTONYMS = """
increase decrease|increases decreases|start stop|starts stops|started stopped|enable disable|enabled disabled|enables disables|
allow forbid|allows forbids|allowed forbidden|open close|opened closed|add remove|added removed|adds removes|before after|
first last|high low|higher lower|new old|newer older|public private|always never|more fewer|true false|required optional|
include exclude|includes excludes|above below|install uninstall|installed uninstalled|success failure|successful failed|
connect disconnect|connected disconnected|with without|all no|most few|minimum maximum|left right|inside outside|faster slower|
fast slow|larger smaller|large small|same different|internal external|local remote|accept reject|accepts rejects|send receive|
sends receives|sent received|
save delete|saved deleted|show hide|shows hides|import export|upload download|lock unlock|early late|
easy difficult|
safe dangerous|good bad|better worse|long short|longer shorter|full empty|automatic manual|automatically manually|
up down|into from|create destroy|created destroyed|creates destroys|keep discard|keeps discards|kept discarded|must may|
recommended discouraged|possible impossible|support oppose|valid invalid|known unknown|strong weak|many few|both neither|
present absent|rise fall|rose fell|gain loss|gains losses|profit loss|buy sell|hot cold|warm cool|light dark|day night|
morning evening|summer winter|north south|east west|parent child|server client|input output|forward backward|
explicit implicit|
mutable immutable|static dynamic|online offline|active inactive|visible hidden|permanent temporary|single multiple|
simple complex
"""
_UNITS = """
seconds minutes|minutes hours|hours days|days weeks|weeks months|months years|second minute|minute hour|hour day|day week|
week month|
month year|MB GB|GB TB|KB MB|kB MB|ms s|mm cm|cm m|km miles|percent points|euros dollars|million billion|billion million|
thousand million|watts volts|litres gallons|°C °F|bytes bits
"""
_PARAPHRASES: tuple[tuple[str, str], ...] = (
    (r"\bdo not\b", "don't"),
    (r"\bcannot\b", "can't"),
    (r"\bneed to\b", "have to"),
    (r"\bin order to\b", "to"),
    (r"\btwo\b", "2"),
    (r"\bthree\b", "3"),
    (r"\bis not\b", "isn't"),
    (r"\bit is\b", "it's"),
    (r"\bas well as\b", "and"),
    (r"\bYou can\b", "You could simply"),
    (r"\bfor example\b", "e.g."),
    (r"\bthe\b", "this"),
)
_WRITTEN = (
    ("procedures/backup", "Nightly backups are kept for 14 nights."),
    ("procedures/backup", "The backup runs every night at 02:30."),
    ("procedures/backup", "A copy of the backup is on a drive in the office."),
    ("procedures/backup", "The key for the copy abroad is on paper, in the bank and with Aunt Ruth."),
    ("procedures/backup", "Use restic -r /backup/local snapshots on otter to list the nights."),
    ("procedures/backup", "Monthly backups are kept 24 months."),
    ("procedures/backup", "The music is not saved, because it can be ripped again."),
    ("procedures/backup", "To restore a whole machine, install it anew with the playbook and then fetch its data."),
    ("procedures/power-cut", "The battery unit feeds otter, marten and the switch for about 25 minutes."),
    ("procedures/power-cut", "After five minutes otter shuts down the virtual machines, and after fifteen it stops itself."),
    ("procedures/power-cut", "Turn off the boiler at its main switch after the first hour."),
    ("procedures/power-cut", "The battery is changed every four years."),
    ("procedures/power-cut", "The next battery change is in 2027."),
    ("procedures/security-updates", "Debian's security fixes are installed every night."),
    ("procedures/security-updates", "A kernel that needs a restart waits until Sunday at 05:00."),
    ("procedures/security-updates", "After a break-in, pull the plug of the street's cable, not of the machine."),
    ("machines/otter", "The pool tank consists of four 8 TB drives in two mirrored pairs."),
    ("machines/otter", "Resilvering takes nine to eleven hours."),
    ("machines/otter", "Read the serial number from the output and from the label, and compare them twice."),
    ("machines/otter", "At night, the fans are limited to 40 %."),
    ("machines/otter", "The warranty is five years."),
    ("machines/badger", "The Zigbee stick is on a one-metre extension cable because USB 3 ports disturb 2.4 GHz."),
    ("machines/badger", "The battery of the laptop lasts for about two hours."),
    ("network/wireless", "The code for visitors changes on the first of each month."),
    ("network/wireless", "You can print a new card with ssh marten guest-card --print."),
    ("network/wireless", "The dead spots are the bathroom and the far end of the garden."),
    ("network/wireless", "gadgets is for lamps and plugs and uses the 2.4 GHz band."),
    ("network/remote-access", "Remote access uses WireGuard on marten, UDP port 51820."),
    ("network/remote-access", "A lost device can be shut out with ssh marten vpn-remove NAME."),
    ("network/names", "Add one line per machine to /etc/unbound/local.d/hosts.conf."),
    ("network/names", "If stoat fails, marten takes over as second server."),
    ("services/automation", "The heating is set to 17 °C at night."),
    ("services/automation", "The plan away begins when no telephone has been at home for ten hours."),
    ("services/automation", "The doorbell is quiet from 20:00 to 7:00 because of the children."),
    ("services/mail", "ERR-4012 means that the machine's certificate has run out."),
    ("services/mail", "You can make a new certificate with ssh mole issue-cert otter."),
    ("services/photos", "The originals of the photos are in /tank/photos."),
    ("services/photos", "The bin is emptied after 60 days."),
    ("garden/irrigation", "The tomatoes are watered for 12 minutes every day."),
    ("garden/irrigation", "The cistern holds 3,000 litres."),
    ("workshop/3d-printer", "For PETG, set the nozzle to 240 °C and the bed to 80 °C."),
    ("workshop/3d-printer", "If the first layer does not stick, wipe the plate with alcohol."),
    ("machines", "otter has 64 GB of memory."),
    ("services", "The wiki runs on otter."),
)


@dataclass(frozen=True, slots=True)
class _Passage:
    source: Source
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wiki:
    name: str
    passages: tuple[_Passage, ...]
    names: tuple[str, ...]

    def other(self, passage: _Passage, random: Random) -> _Passage:
        """Return a passage of another page."""
        others = [each for each in self.passages if each.source.path != passage.source.path]
        return random.choice(others)


_Counts = Counter[tuple[str, str]]
"""By group of wikis and operator."""
_Operator = Callable[[_Wiki, _Passage, str, Random], str | None]


def measure(options: Options) -> list[Figure]:
    """Return how many unsupported sentences are called supported, and how many true ones are not, by kind."""
    wikis = list(_wikis(options.wikis))
    each = _EACH if len(wikis) > 1 else _ALONE
    similarity = _similarity()
    false, alarms = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    made, true = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    unlike = 0
    for at, wiki in enumerate(wikis):
        group = "demo" if options.wikis is None else "fitted" if at % 2 == 0 else "held out"
        say(f"{wiki.name}: {len(wiki.passages)} sections")
        for kind, passage, text in _statements(wiki, _UNSUPPORTED, each):
            made[group, kind] += 1
            if _reason(text, passage, None) is None:
                unlike += _reason(text, passage, similarity) is not None
                false[group, kind] += 1
                say(f"called supported, {kind}: {text!r} in {passage.source.path}")
        for kind, passage, text in _statements(wiki, _TRUE, each):
            true[group, kind] += 1
            alarms[group, kind] += _reason(text, passage, similarity) is not None
    return [*_figures(made, false, true, alarms), *_written(similarity), Figure("of these, refused by similarity", unlike, "")]


def _figures(
    made: Counter[tuple[str, str]],
    false: Counter[tuple[str, str]],
    true: Counter[tuple[str, str]],
    alarms: Counter[tuple[str, str]],
) -> Iterator[Figure]:
    for group in dict.fromkeys(group for group, _ in made):
        count = sum(number for (of, _), number in made.items() if of == group)
        wrong = sum(number for (of, _), number in false.items() if of == group)
        yield at_least(f"unsupported sentences, {group}", count, "", _MIN_STATEMENTS)
        yield at_most(f"of these called supported, {group}", wrong, "", 0)
        for of, kind in made:
            if of == group:
                yield at_most(f"called supported: {kind}, {group}", false[of, kind], "", 0, f"{made[of, kind]} sentences")
        for of, kind in true:
            if of == group:
                note = f"{true[of, kind]} sentences"
                yield Figure(f"true but marked: {kind}, {group}", alarms[of, kind] / true[of, kind], "", note=note)


def _written(similarity: Similarity) -> Iterator[Figure]:
    marked = 0
    for path, text in _WRITTEN:
        page = (ROOT / "demo" / "pages" / f"{path}.md").read_text("utf-8")
        source = Source(1, path, parse_markdown(page).front_matter.get("title", path), (), page)
        reason = _reason(text, _Passage(source, ()), similarity)
        marked += reason is not None
        if reason:
            say(f"marked: {text!r}: {reason}")
    yield Figure("true but marked: written by hand, demo", marked / len(_WRITTEN), "", note=f"{len(_WRITTEN)} sentences")


def _reason(text: str, passage: _Passage, similarity: Similarity | None) -> str | None:
    statement = Statement(text, StatementKind.SENTENCE, 0, (1,))
    return unsupported_reason(statement, [passage.source], similarity=similarity)


def _similarity() -> Similarity:
    from otterwiki_semantic.embedding.local.bundled import BundledModel

    model = BundledModel()

    def compare(text: str, others: Sequence[str]) -> Sequence[float]:
        vectors = model.embed([text, *others])
        return [float(each) for each in vectors[1:] @ vectors[0]]

    return compare


def _wikis(place: Path | None) -> Iterator[_Wiki]:
    if place is None:
        yield _wiki("demo", ROOT / "demo" / "pages")
    else:
        for path in sorted(place.iterdir()):
            if (path / "pages").is_dir():
                yield _wiki(path.name, path / "pages")


def _wiki(name: str, pages: Path) -> _Wiki:
    passages = [passage for path in sorted(pages.rglob("*.md")) for passage in _passages(path, pages)]
    Random(_SEED).shuffle(passages)
    names = sorted({name for passage in passages for text in passage.sentences for name in _names(text, passage)})
    return _Wiki(name, tuple(passages[:_SECTIONS]), tuple(names))


def _names(text: str, passage: _Passage) -> Iterator[str]:
    """Yield the names in a text: what is no ordinary word with a capital letter."""
    ordinary = set(re.findall(r"\b[a-z]+\b", " ".join(passage.sentences))) | _OTHER
    for match in _NAME.finditer(text):
        if len(match[0]) > 2 and not all(word.lower() in ordinary for word in re.findall(r"\w+", match[0])):
            yield match[0]


def _passages(path: Path, pages: Path) -> Iterator[_Passage]:
    """Yield the sections of a page that have sentences."""
    text = path.read_text("utf-8", errors="replace").replace("\r\n", "\n")
    lines, page = text.split("\n"), path.relative_to(pages).with_suffix("").as_posix()
    for section in parse_markdown(text).sections:
        prose = [
            sentence.strip()
            for block in section.blocks
            if block.kind is BlockKind.PROSE
            for sentence in re.split(r"(?<=[.!?]) (?=[A-Z\"'])", " ".join(line.text for line in block.lines))
        ]
        chosen = [
            each
            for each in prose
            if len(each.split()) in _WORDS and each.endswith(".") and each[0].isupper() and each.isascii()
        ]
        if chosen:
            own = "\n".join(lines[section.start_line - 1 : section.end_line])
            source = Source(1, page, path.stem.replace("-", " "), section.path, own)
            yield _Passage(source, tuple(dict.fromkeys(chosen)))


def _statements(wiki: _Wiki, operators: dict[str, _Operator], most: int) -> Iterator[tuple[str, _Passage, str]]:
    """Yield what the operators make of sentences, with the passage cited for it."""
    for kind, operator in operators.items():
        random, made = Random(f"{_SEED} {kind}"), set[tuple[str, str]]()
        sentences = [(passage, text) for passage in wiki.passages for text in passage.sentences]
        for passage, sentence in sentences * _ROUNDS:
            text = operator(wiki, passage, sentence, random) if len(made) < most else None
            if text is None or (operators is not _TRUE and _plain(text) in _plain(passage.source.text)):
                continue
            if (passage.source.path, text) not in made:
                made.add((passage.source.path, text))
                yield kind, passage, text


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _exchanged(pairs: str, both: bool, _wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    """Exchange one word for the other of its pair."""
    table: dict[str, str] = {}
    for pair in pairs.replace("\n", "").split("|"):
        one, other = pair.split()
        table.setdefault(one, other)
        if both:
            table.setdefault(other, one)
    found = [match for match in re.finditer(r"[A-Za-z°]+", text) if match[0].lower() in table or match[0] in table]
    if not found:
        return None
    match = random.choice(found)
    other = table.get(match[0]) or table[match[0].lower()]
    return (
        text[: match.start()]
        + (other.capitalize() if match[0][0].isupper() and other.islower() else other)
        + text[match.end() :]
    )


def _number_changed(_wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    match = random.choice(found)
    value = float(match[0])
    other = random.choice([value + 1, value * 2 + 1, value * 10 + 3, value + 7])
    return text[: match.start()] + (str(int(other)) if other == int(other) else f"{other:.1f}") + text[match.end() :]


def _number_word_changed(_wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    words = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"]
    found = [match for match in re.finditer(r"[a-z]+", text) if match[0] in words]
    if not found:
        return None
    match = random.choice(found)
    return text[: match.start()] + random.choice([word for word in words if word != match[0]]) + text[match.end() :]


def _number_of_another_sentence(_wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    own = {match[0] for match in _NUMBER.finditer(text)}
    others = sorted({match[0] for each in passage.sentences if each != text for match in _NUMBER.finditer(each)} - own)
    found = list(_NUMBER.finditer(text))
    if not found or not others:
        return None
    match = random.choice(found)
    return text[: match.start()] + random.choice(others) + text[match.end() :]


def _two_swapped(pattern: re.Pattern[str], _wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    found = [match for match in pattern.finditer(text) if match[0].lower() not in _OTHER]
    pairs = [(a, b) for a in found for b in found if a.end() + 2 < b.start() and a[0].lower()[:4] != b[0].lower()[:4]]
    pairs = [
        (a, b) for a, b in pairs if re.search(r"[a-z]", text[a.end() : b.start()]) and not _joined(text[a.end() : b.start()])
    ]
    if not pairs:
        return None
    one, other = random.choice(pairs)
    return text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]


def _joined(between: str) -> bool:
    """Whether what stands between two words makes them a list, whose order says nothing."""
    return bool(re.fullmatch(r"[\w\s,/]*\b(?:and|or)\b[\w\s]*|[\s,]+", between))


def _around_verb(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    """Swap what stands before a verb with what stands behind it."""
    match = re.fullmatch(
        r"((?:The|A|An|Each|Every|Our) [\w -]{3,30}?)( \w+s )((?:the|a|an|its|our|each|every) [\w -]{3,30})\.", text
    )
    if match is None:
        return None
    return f"{match[3][0].upper()}{match[3][1:]}{match[2]}{match[1][0].lower()}{match[1][1:]}."


def _name_of_wiki(wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    found = [match for match in _NAME.finditer(text) if match[0] in wiki.names]
    others = [name for name in wiki.names if name not in text and name not in passage.source.text]
    if not found or not others:
        return None
    match = random.choice(found)
    return text[: match.start()] + random.choice(others) + text[match.end() :]


def _name_of_section(wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    found = [match for match in _NAME.finditer(text) if match[0] in wiki.names]
    near = [*passage.sentences, *(f"a {heading}" for heading in (passage.source.title, *passage.source.headings))]
    others = sorted(
        {
            name
            for each in near
            if each != text
            for name in _names(each, passage)
            if name not in text and not any(own[0] in name for own in found)
        }
    )
    if not found or not others:
        return None
    match = random.choice(found)
    return text[: match.start()] + random.choice(others) + text[match.end() :]


def _word_of_section(_wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    """Exchange the subject, as far as it is one word after an article, for a word of a heading or of another sentence."""
    match = re.match(r"(?:The|A|An|Each|Every|Our) ([a-z]{4,})(?= (?:is|are|was|has|can|will|should|must|may|does)\b)", text)
    others: list[str] = [
        word for each in (*passage.sentences, *passage.source.headings) if each != text for word in _WORD.findall(each)
    ]
    others = [word.lower() for word in others if word.lower()[:3] not in text.lower() and word.lower() not in _OTHER]
    if match is None or not others:
        return None
    return text[: match.start(1)] + random.choice(others) + text[match.end(1) :]


def _negated(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    if re.search(r"\bnot\b|n't|\bno\b|never|cannot", text):
        return None
    if match := re.search(r"\b(?:is|are|was|were|can|will|should|must|may|could|would)\b", text):
        return f"{text[: match.end()]} not{text[match.end() :]}".replace("can not", "cannot")
    if re.match(r"(?:Use|Add|Open|Run|Set|Check|Keep|Make|Put|Install|Press|Click|Create|Select|Go|Take|Write|Change)\b", text):
        return f"Do not {text[0].lower()}{text[1:]}"
    return None


def _negation_left_out(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    if re.search(r"not only|whether or not|if not|why not", text, re.IGNORECASE):
        return None
    changed = re.sub(
        r"\bcannot\b", "can", re.sub(r"(?<=[a-z])n't\b| not\b| never\b| no longer\b|\bDo not (?=[a-z])", "", text, count=1)
    )
    changed = re.sub(r"\b(is|are|has|have|with) no (?=[a-z])", r"\1 a ", changed, count=1)
    return None if changed == text else changed[0].upper() + changed[1:]


def _restriction_left_out(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    changed: str = re.sub(
        r" only\b|,? (?:if|unless|except|only when|as long as|provided that)\b[^,.]*(?=[,.])|^(?:If|Unless) [^,]+, ",
        "",
        text,
        count=1,
    )
    return None if changed == text or len(changed.split()) < 4 else changed[0].upper() + changed[1:]


def _recombined(_wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    """Join the subject of a sentence with what another one says of something else."""
    others = [each for each in passage.sentences if each != text and _VERB.search(each) and not _PRONOUN.match(each)]
    own = _VERB.search(text)
    others = [each for each in others if each != text and not _is_pronoun(each)]
    if own is None or _is_pronoun(text) or not others:
        return None
    other = random.choice(others)
    match = _VERB.search(other)
    assert match is not None
    subject, its = _plain(text[: own.start()]), _plain(other[: match.start()])
    if set(subject.split()) & {word for word in its.split() if len(word) > 3} or "," in text[: own.start()]:
        return None
    return text[: own.start()] + other[match.start() :]


def _is_pronoun(text: str) -> bool:
    """Whether the subject of a sentence says nothing by itself."""
    match = _VERB.search(text)
    subject = re.findall(r"[a-z]{4,}", text[: match.start()].lower()) if match else []
    return (
        bool(_PRONOUN.search(text[: match.start() if match else 0]))
        or not set(subject) - _OTHER
        or text[:3] in {"As ", "And", "But", "So "}
    )


def _of_another_page(wiki: _Wiki, passage: _Passage, _text: str, random: Random) -> str | None:
    return random.choice(wiki.other(passage, random).sentences)


def _of_another_section(wiki: _Wiki, passage: _Passage, _text: str, random: Random) -> str | None:
    near = [each for each in wiki.passages if each.source.path == passage.source.path and each is not passage]
    texts = [text for each in near for text in each.sentences if not _PRONOUN.match(text)]
    return random.choice(texts) if texts else None


def _invented(_wiki: _Wiki, passage: _Passage, _text: str, random: Random) -> str | None:
    words = [word for word in _WORD.findall(" ".join(passage.sentences)) if word.islower() and word not in _OTHER]
    if len(words) < 4:
        return None
    one, two, three = random.sample(words, 3)
    title = passage.source.title
    return random.choice(
        [
            f"{title} was written by the {one} of the {two} in 1987.",
            f"The {one} deletes the {two} every {random.randint(2, 90)} days.",
            f"The {one} is the {two} of the {three}.",
            f"{title} {two} each {one}.",
            f"Each {one} has a {two} and a {three}.",
            f"{title} is {one} and {two}.",
        ]
    )


def _verbatim(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    return text


def _shortened(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    changed = re.sub(
        r" \([^()]*\)|, (?:which|so|because|such as|including|since)\b[^,.]*(?=[.])| because\b[^,.]*(?=[.])", "", text, count=1
    )
    changed = (
        changed if changed != text else re.sub(r"^(?:In|At|On|For|By|After|During|From|However|Also)\b[^,]{0,60}, ", "", text)
    )
    return None if changed == text or len(changed.split()) < 4 else changed[0].upper() + changed[1:]


def _merged(_wiki: _Wiki, passage: _Passage, text: str, random: Random) -> str | None:
    others = [each for each in passage.sentences if each != text and not _PRONOUN.match(each)]
    if not others:
        return None
    other = random.choice(others)
    joined = random.choice([", and ", "; ", ", while "])
    return text.rstrip(".") + joined + (other if other[:2].isupper() else other[0].lower() + other[1:])


def _reordered(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    match = re.fullmatch(r"((?:In|At|On|For|By|After|During|From|If|When|Before) [^,]{3,60}), ([^,]{10,})\.", text)
    return f"{match[2][0].upper()}{match[2][1:]} {match[1][0].lower()}{match[1][1:]}." if match else None


def _active_for_passive(_wiki: _Wiki, _passage: _Passage, text: str, _random: Random) -> str | None:
    match = re.fullmatch(r"((?:The|A|An) [\w -]{3,40}?) (?:is|are) (\w+ed) by ((?:the|a|an) [\w -]{3,40})\.", text)
    return f"{match[3][0].upper()}{match[3][1:]} {match[2][:-1]}s {match[1][0].lower()}{match[1][1:]}." if match else None


def _paraphrased(_wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    found = [(pattern, other) for pattern, other in _PARAPHRASES if re.search(pattern, text)]
    if not found:
        return None
    pattern, other = random.choice(found)
    return re.sub(pattern, other, text, count=1)


def _announced(_wiki: _Wiki, _passage: _Passage, text: str, random: Random) -> str | None:
    before = random.choice(
        ["According to the wiki, ", "It seems that ", "The documentation says that ", "You should know that "]
    )
    return None if before.startswith("You") else f"{before}{text[0].lower()}{text[1:]}"


_UNSUPPORTED: dict[str, _Operator] = {
    "number changed": _number_changed,
    "number word changed": _number_word_changed,
    "number of another sentence": _number_of_another_sentence,
    "numbers swapped": partial(_two_swapped, _NUMBER),
    "unit changed": partial(_exchanged, _UNITS, True),
    "name of the wiki": _name_of_wiki,
    "name of the section": _name_of_section,
    "subject exchanged": _word_of_section,
    "names swapped": partial(_two_swapped, _NAME),
    "words swapped": partial(_two_swapped, _WORD),
    "subject and object swapped": _around_verb,
    "negation put in": _negated,
    "negation left out": _negation_left_out,
    "restriction left out": _restriction_left_out,
    "antonym": partial(_exchanged, _ANTONYMS, True),
    "recombined": _recombined,
    "of another page": _of_another_page,
    "of another section": _of_another_section,
    "invented": _invented,
}
_TRUE: dict[str, _Operator] = {
    "verbatim": _verbatim,
    "shortened": _shortened,
    "two merged": _merged,
    "adverbial moved": _reordered,
    "active for passive": _active_for_passive,
    "paraphrased by rules": _paraphrased,
    "announced": _announced,
}
