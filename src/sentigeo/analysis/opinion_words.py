"""What the wording of a review says about its label, as a tag that is computed.

Opinion words are terms whose log-odds in the training reviews of a class stand out. A review's tag
compares its opinion words with its label; thresholds come from the training reviews as well.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from sentigeo.analysis.keywords import count_terms, least_texts, log_odds, split_words
from sentigeo.attention.attention import find_words
from sentigeo.errors import UserError
from sentigeo.stats import no_estimate, share

CLEAR = 3.0  # z-score that makes a term an opinion word
SIDE = 0.2  # share of opinion words by which one side must outweigh the other
TURNS = {
    "although", "but", "despite", "except", "however", "instead", "nevertheless", "otherwise",
    "still", "though", "unfortunately", "whereas", "while", "yet",
}  # fmt: skip
TAGS = {
    "few opinions": "few opinion words for its length, as in a plot summary",
    "other side": "more opinion words of another class: irony, a comparison, or a wrong label",
    "mixed": "opinion words of both sides",
    "turns": "opinion words of its own class, and many words of contrast",
    "plain": "opinion words of its own class",
}
NEGATIONS = {
    "barely", "cannot", "hardly", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "rarely", "scarcely", "without",
}  # fmt: skip
REACH = 5  # words after a negation or a word of contrast within which an opinion is turned round
SHORTEST, LONGEST = 6, 36  # words and signs of a sentence
_END = re.compile(r"(?<=[.!?])[\"')]*\s+|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True)
class Wording:
    """What is known about words from training reviews.

    Attributes:
        terms: v opinion words.
        owners: (v,) class that each speaks for.
        few: Opinion words per word up to which a review has few of them.
        many: Words of contrast per word above which a review has many.
    """

    terms: list[str]
    owners: np.ndarray
    few: float
    many: float


def learn_wording(texts: Sequence[str], labels: np.ndarray, classes: int) -> Wording:
    """Learn opinion words from labelled texts; there may be none.

    Args:
        texts: n training texts.
        labels: (n,) their classes.
        classes: How many classes there are.
    """
    try:
        terms = count_terms(texts, least_texts(len(texts)))
    except UserError:  # no word is used by several texts, as where words are not written apart
        return Wording([], np.empty(0, np.int64), few=0.0, many=0.0)
    scores = log_odds(terms.texts_by_cluster(labels, classes))
    clear = np.flatnonzero(scores.max(axis=0) > CLEAR)
    names, owners = [terms.names[place] for place in clear], scores.argmax(axis=0)[clear]
    used = np.asarray(terms.counts[:, clear].sum(axis=1)).ravel()
    words, turns = _count_words(texts)
    few = np.quantile(used / words, 0.1)
    return Wording(names, owners, float(few), float(np.quantile(turns / words, 0.9)))


def tag_texts(wording: Wording, texts: Sequence[str], labels: np.ndarray) -> pd.DataFrame:
    """Tag texts by their opinion words.

    Args:
        wording: What is known about words.
        texts: n texts.
        labels: (n,) their true classes.

    Returns:
        Columns `own` and `other` (uses of opinion words of the text's class, and of the other class
        that it has most of),
        `turns` (words of contrast), `words` and `tag`, the first of `TAGS` that applies.
    """
    used = _count_opinions(wording, texts)
    classes = np.arange(1 + max(labels.max(initial=0), wording.owners.max(initial=0)))
    by_class = np.asarray(used @ (wording.owners[:, None] == classes).astype(np.int64))
    ours = labels[:, None] == classes
    own, other = by_class[ours], np.where(ours, 0, by_class).max(axis=1)
    words, turns = _count_words(texts)
    lean = (own - other) / np.maximum(own + other, 1)
    opinions = by_class.sum(axis=1)
    rules = [(opinions == 0) | (opinions / words <= wording.few), lean < -SIDE, lean <= SIDE,
             turns / words > wording.many]  # fmt: skip
    tag = np.select(rules, list(TAGS)[:-1], list(TAGS)[-1])
    return pd.DataFrame({"own": own, "other": other, "turns": turns, "words": words, "tag": tag})


def errors_by_tag(tags: pd.Series, wrong: np.ndarray) -> pd.DataFrame:
    """Estimate how often texts of each tag are misclassified.

    Returns:
        Columns `tag`, `meaning`, `errors`, `value` (share of the tag's texts), `low`, `high`, `n`.
    """
    rows = []
    for tag, meaning in TAGS.items():
        inside = wrong[tags.to_numpy() == tag]
        rate = share(inside) if len(inside) else no_estimate(0)
        rows.append({"tag": tag, "meaning": meaning, "errors": int(inside.sum()), **vars(rate)})
    return pd.DataFrame(rows)


def _count_opinions(wording: Wording, texts: Sequence[str]) -> csr_matrix:
    """Return the (n, v) uses of opinion words, in the order of the wording's terms."""
    if not wording.terms:
        return csr_matrix((len(texts), 0), dtype=np.int64)
    return count_terms(texts, 1, wording.terms).counts  # in alphabetical order, as the terms are


def _count_words(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n,) words of texts, at least 1, and how many of them are words of contrast."""
    split = [split_words(text) for text in texts]
    words = np.array([max(1, len(own)) for own in split])
    return words, np.array([sum(word in TURNS for word in own) for own in split])


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
