"""Sentences of reviews, and where they turn an opinion round."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from sentigeo.attention import find_words
from sentigeo.errors import UserError
from sentigeo.wording import TURNS, Wording

NEGATIONS = {
    "barely", "cannot", "hardly", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "rarely", "scarcely", "without",
}  # fmt: skip
REACH = 5  # words after a negation or a word of contrast within which an opinion is turned round
SHORTEST, LONGEST = 6, 36  # words and signs of a sentence
_END = re.compile(r"(?<=[.!?])[\"')]*\s+|(?<=[\u3002\uff01\uff1f])")


def opinion_words(wording: Wording) -> set[str]:
    """Return single words that speak for a class and do not turn opinions round themselves."""
    return {term for term in wording.terms if " " not in term and not turns_round(term)}


def turns_round(word: str) -> bool:
    """Tell whether a word is a negation or a word of contrast."""
    small = word.lower().replace("\u2019", "'")
    return small in NEGATIONS or small in TURNS or small.endswith("n't")


def split_sentences(text: str) -> list[str]:
    """Split a text after full stops, question and exclamation marks; cut what is too long."""
    found = []
    for sentence in filter(None, (part.strip() for part in _END.split(text))):
        spans = find_words(sentence)
        for start in range(0, len(spans), LONGEST):
            piece = spans[start : start + LONGEST]
            found.append(sentence[piece[0][0] : piece[-1][1]])
    return found


def find_flip(words: Sequence[str], opinions: Collection[str]) -> tuple[int, int] | None:
    """Find a word that turns an opinion round, and the opinion word that it turns.

    Args:
        words: The words of a sentence.
        opinions: Words that speak for a class, in lower case.

    Returns:
        Places of the last negation or word of contrast with an opinion word at most `REACH` words
        after it, and of the first such opinion word; nothing if there is none.
    """
    for source in reversed(range(len(words))):
        if turns_round(words[source]):
            target = find_opinion(words[source + 1 : source + 1 + REACH], opinions)
            if target is not None:
                return source, source + 1 + target
    return None


def find_opinion(words: Sequence[str], opinions: Collection[str]) -> int | None:
    """Return the place of the first opinion word, if there is one."""
    return next((place for place, word in enumerate(words) if word.lower() in opinions), None)


def draw_sentences(
    texts: Sequence[str], opinions: Collection[str], count: int, seed: int = 0
) -> list[str]:
    """Draw different sentences; half of them turn an opinion round, if there are as many.

    The others have an opinion word; where there are not enough of them, none, and at last fewer
    words than a sentence should have.

    Args:
        texts: Texts to draw from.
        opinions: Words that speak for a class, in lower case.
        count: How many sentences.
        seed: Random seed.
    """
    kinds: dict[str, list[str]] = {"turning": [], "opinion": [], "plain": [], "short": []}
    for sentence in dict.fromkeys(part for text in texts for part in split_sentences(text)):
        kinds[_kind(sentence, opinions)].append(sentence)
    others = sum(len(own) for kind, own in kinds.items() if kind != "turning")
    rng, drawn = np.random.default_rng(seed), list[str]()
    for kind, own in kinds.items():
        most = max(count // 2, count - others) if kind == "turning" else count - len(drawn)
        drawn += [own[row] for row in np.sort(rng.permutation(len(own))[:most])]
    if not drawn:
        raise UserError("No text has a word to study attention with.")
    return drawn


def _kind(sentence: str, opinions: Collection[str]) -> str:
    words = [sentence[a:b] for a, b in find_words(sentence)]
    if len(words) < SHORTEST:
        return "short"
    if find_flip(words, opinions):
        return "turning"
    return "plain" if find_opinion(words, opinions) is None else "opinion"
