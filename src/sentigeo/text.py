"""Texts as strings: cleaned, cut into words, shortened, escaped."""

import html
import re
import unicodedata
from textwrap import shorten

# Bytes of Windows-1252 that went into the reviews as if they were Latin-1 (dashes, quotes, dots).
# A tokenizer drops them as control characters and glues the words on either side together.
_WINDOWS = {
    code: bytes([code]).decode("cp1252", errors="replace").replace("\ufffd", " ")
    for code in range(0x80, 0xA0)
}
_REPAIR = _WINDOWS | dict.fromkeys((*range(32), 127), " ")
_TAGS = re.compile(r"</?(?:br|hr|p|i|b|em|strong|spoiler)\s*/?>", re.IGNORECASE)
# Vowel signs and accents of other scripts, which belong to the letter before them.
MARKS = "".join(
    chr(code) for code in range(0x300, 0x11000) if unicodedata.category(chr(code)) in ("Mn", "Mc")
)
# Words with their apostrophes ("don't" is one), single signs, single Chinese or Japanese letters.
_SINGLE = "\u3040-\u30ff\u3400-\u9fff"
_LETTERS = rf"(?:(?![{_SINGLE}])[\w{MARKS}])+"
_WORD = re.compile(rf"[{_SINGLE}]|{_LETTERS}(?:['\u2019]{_LETTERS})*|[^\w\s]")
LONGEST = 36  # words and signs of a sentence
_END = re.compile(r"(?<=[.!?])[\"')]*\s+|(?<=[\u3002\uff01\uff1f])")


def clean_text(text: str) -> str:
    """Return a text without HTML line breaks, simple tags, entities and stray control bytes."""
    return " ".join(_TAGS.sub(" ", html.unescape(text)).translate(_REPAIR).split())


def words(text: str) -> list[str]:
    """Lower-case words of a text, contractions kept whole."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("\u2019", "'"))


def find_words(text: str) -> list[tuple[int, int]]:
    """Return where the words and signs of a text begin and end."""
    return [match.span() for match in _WORD.finditer(text)]


def split_sentences(text: str) -> list[str]:
    """Split a text after full stops, question and exclamation marks; cut what is too long."""
    found = []
    for sentence in _END.split(text):
        spans = find_words(sentence)
        for start in range(0, len(spans), LONGEST):
            piece = spans[start : start + LONGEST]
            found.append(sentence[piece[0][0] : piece[-1][1]])
    return found


def excerpt(text: str, width: int = 160) -> str:
    """Shorten a text to a width, at a word boundary if it has one."""
    short = shorten(text, width, placeholder=" ...")
    return short if len(short) > width // 2 or len(text) <= width else f"{text[: width - 4]} ..."


def plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    marked = re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", " ".join(text.split()))
    return html.escape(marked, quote=False)


def repair(text: str) -> str:
    """Replace halves of surrogate pairs: JSON can hold them, but no file in UTF-8."""
    return text.encode("utf-8", "replace").decode()
