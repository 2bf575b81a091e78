"""How the linter reads prose: it counts words and sentences, and recognises commands.

Counting follows rules and not a model, so that two readers count the same. The rule of sentences:

1. A sentence ends at `.`, `!`, `?` or `…`, or several of them, with the closing quotes and brackets after
   them, when white space or the end of the text follows. So the dots in `v1.2` and `output_ref.json` end no sentence.
   The wide marks `。！？` need no white space.
2. A blank line ends it too, and so does the beginning of a list item (`- `, `* `, `• `, `1. `, `2) `).
3. A single full stop does not end a sentence after an abbreviation that is never last (e.g., i.e., vs., Dr.), after
   one that announces a number (no. 5, fig. 2), and after a single capital, which is an initial.
4. After an abbreviation that may be last (etc., Inc., U.S.), after several marks (`...`) and after a
   closing quote or bracket, a lower-case letter continues the sentence and anything else begins a new one.
5. Text without a letter is not a sentence: a list number, three dots.
6. Text in backticks is one word, whatever it contains.
"""

from __future__ import annotations

import re

_BLOCK = re.compile(r"\n[ \t\r]*\n|\n(?=[ \t]*(?:[-*•]|[0-9]+[.)])[ \t])")
_CODE = re.compile(r"`[^`]*`")
_END = re.compile(r"""[.!?…]+["'”’»)\]]*(?=\s|$)|[。！？]+[」』”’）]*""")
_LAST_WORD = re.compile(r"""[^\s("'“‘«\[]*$""")
_VISIBLE = re.compile(r"\S")
_LETTER = re.compile(r"[^\W\d_]")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")

_NEVER_LAST = frozenset({"e.g", "i.e", "eg", "ie", "vs", "cf", "ca", "approx", "resp", "viz", "incl", "excl"})
_TITLES = frozenset({"Mr", "Mrs", "Ms", "Dr", "Prof", "St"})
_BEFORE_NUMBER = frozenset({"no", "nr", "fig", "eq", "sec", "ch", "vol", "p", "pp", "art"})
_MAYBE_LAST = frozenset({"etc", "inc", "ltd", "co", "corp", "al", "jr", "sr"})


def words(text: str) -> int:
    """Count the words: runs between white space with a letter or a digit."""
    return sum(any(character.isalnum() for character in run) for run in text.split())


def sentences(text: str) -> int:
    """Count the sentences, by the rules of this module."""
    total = 0
    for block in _BLOCK.split(_CODE.sub("x", text)):
        start = 0
        for mark in _END.finditer(block):
            if _ends(block, mark) and _LETTER.search(block, start, mark.start()):
                total, start = total + 1, mark.end()
        total += _LETTER.search(block, start) is not None
    return total


def _ends(block: str, mark: re.Match[str]) -> bool:
    """Return whether a sentence ends at the mark (rules 3 and 4)."""
    following = _VISIBLE.search(block, mark.end())
    if following is None or mark.group()[0] in "。！？":
        return True
    continues = following.group().islower()
    if mark.group() != ".":
        return not continues
    found = _LAST_WORD.search(block, max(0, mark.start() - 40), mark.start())
    word = found.group() if found else ""
    if word.lower() in _NEVER_LAST or word in _TITLES or (len(word) == 1 and word.isupper()):
        return False
    if word.lower() in _BEFORE_NUMBER and following.group().isdigit():
        return False
    return not (continues and (word.lower() in _MAYBE_LAST or _DOTTED.fullmatch(word)))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words before the verb of a command: "Please carefully build the page."
_BEFORE_VERB = _words("please kindly then first next also now just always never not")
_VERBS = _words(
    """
    add adjust allow analyse analyze apply assign attach avoid bring calculate choose collect compare compute
    configure confirm connect consolidate convert create debug decide define delete deliver deploy describe
    determine develop diagnose disable discover do don't drop edit eliminate enable ensure establish evaluate
    examine execute expand explain explore expose extend extract fetch figure find finish follow gather generate
    get give go handle identify implement improve include increase inspect install integrate introduce
    investigate keep launch let let's maintain make migrate modify move normalise normalize optimise optimize
    organise organize perform pick prepare prevent produce propose provide publish put rebuild reduce refactor
    remove rename repair replace reproduce resolve restore retrieve rewrite scaffold select send set show
    simplify solve specify submit summarise summarize take tell translate troubleshoot tune turn upload
    validate verify write
    """
)
# These are verbs or nouns: "Build the page" is a command, "Build time is under a minute" is not.
_VERBS_OR_NOUNS = _words(
    """
    archive build call change check clean close complete correct cover cut design display document draft export
    fix help import index link list load log look map merge model monitor open patch plan port process query
    release report research return review run scan schedule search secure ship sort split start stop store
    support test track update upgrade use work
    """
)
_DETERMINERS = _words(
    """
    a an the this that these those all any each every both some our your their its it them new existing missing
    up out for to
    """
)
_FINITE = _words(
    """
    is are was were has have had can cannot must will may should does exists exist passes pass works runs returns
    shows contains contain holds hold accepts accept covers cover meets meet fails fail stays stay uses needs
    includes include gives takes remains remain lists reads writes sends reports
    """
)


def commands(text: str) -> bool:
    """Return whether the text is a command ("Build X") and not a statement ("X is built")."""
    spoken = [word.strip("\"'“”‘’«»()[]*_-:;,.!?`").lower().replace("’", "'") for word in text.split()[:60]]
    spoken = [word for word in spoken if word]
    while spoken and (spoken[0] in _BEFORE_VERB or (spoken[0].endswith("ly") and len(spoken[0]) > 4)):
        del spoken[0]
    if not spoken:
        return False
    first, rest = spoken[0], spoken[1:]
    if first == "you":
        return bool(rest) and rest[0] in {"must", "should", "will", "need", "have", "can"}
    if first in _VERBS:
        return True
    if first not in _VERBS_OR_NOUNS or not rest:
        return False
    return rest[0] in _DETERMINERS or _FINITE.isdisjoint(rest)
