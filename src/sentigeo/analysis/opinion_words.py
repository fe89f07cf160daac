"""Opinion words, whose log-odds in training reviews of a class stand out, and their negation."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sentigeo.analysis.keywords import count_terms, least_texts, log_odds, split_words
from sentigeo.errors import UserError
from sentigeo.stats import exactly, share
from sentigeo.text import find_words, split_sentences

CLEAR = 3.0  # z-score that makes a term an opinion word
SIDE = 0.2  # share of opinion words by which one side must outweigh the other
CONTRASTS = {
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
REACH = 5  # words after a negation or a word of contrast that are in its scope
SHORTEST = 6  # words and signs of a sentence


@dataclass(frozen=True)
class OpinionWords:
    """What is known about v opinion words, in alphabetical order, from training reviews."""

    terms: list[str]
    classes: np.ndarray  # (v,) class that each speaks for
    few: float  # opinion words per word up to which a review has few of them
    many: float  # words of contrast per word above which a review has many

    @property
    def single(self) -> set[str]:
        """Single words that speak for a class and are no negation or word of contrast."""
        return {term for term in self.terms if " " not in term and not is_negation(term)}


def learn_opinion_words(texts: Sequence[str], labels: np.ndarray, classes: int) -> OpinionWords:
    """Learn opinion words from n labelled training texts; there may be none."""
    try:
        terms = count_terms(texts, least_texts(len(texts)))
    except UserError:  # no word is used by several texts, as where words are not written apart
        return OpinionWords([], np.empty(0, np.int64), few=0.0, many=0.0)
    scores = log_odds(terms.texts_by_cluster(labels, classes))
    clear = np.flatnonzero(scores.max(axis=0) > CLEAR)
    names, speaks_for = [terms.names[place] for place in clear], scores.argmax(axis=0)[clear]
    used = np.asarray(terms.counts[:, clear].sum(axis=1)).ravel()
    words, contrasts = _count_words(texts)
    few, many = np.quantile(used / words, 0.1), np.quantile(contrasts / words, 0.9)
    return OpinionWords(names, speaks_for, float(few), float(many))


def tag_texts(opinions: OpinionWords, texts: Sequence[str], labels: np.ndarray) -> pd.DataFrame:
    """Tag n texts by opinion words of their class (`own`) and of the `other` they have most of."""
    classes = 1 + max(labels.max(initial=0), opinions.classes.max(initial=0))
    by_class = np.zeros((len(texts), classes), np.int64)  # uses of opinion words
    if opinions.terms:
        sides = (opinions.classes[:, None] == np.arange(classes)).astype(np.int64)
        by_class = count_terms(texts, 1, opinions.terms).counts @ sides
    of_label = labels[:, None] == np.arange(classes)
    same, other = by_class[of_label], np.where(of_label, 0, by_class).max(axis=1)
    words, turns = _count_words(texts)
    balance = (same - other) / np.maximum(same + other, 1)
    every = by_class.sum(axis=1)
    rules = [(every == 0) | (every / words <= opinions.few), balance < -SIDE, balance <= SIDE,
             turns / words > opinions.many]  # fmt: skip
    tag = np.select(rules, list(TAGS)[:-1], list(TAGS)[-1])
    return pd.DataFrame({"own": same, "other": other, "turns": turns, "words": words, "tag": tag})


def errors_by_tag(tags: pd.Series, wrong: np.ndarray) -> pd.DataFrame:
    """Estimate how often texts of each tag are misclassified, as share of its texts."""
    rows = []
    for tag, meaning in TAGS.items():
        inside = wrong[tags.to_numpy() == tag]
        rate = share(inside) if len(inside) else exactly(np.nan, 0)
        rows.append((tag, meaning, int(inside.sum()), rate))
    return pd.DataFrame(rows, columns=["tag", "meaning", "errors", "estimate"])


def _count_words(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n,) words of texts, at least 1, and how many of them are words of contrast."""
    split = [split_words(text) for text in texts]
    lengths = np.array([max(1, len(words)) for words in split])
    return lengths, np.array([sum(word in CONTRASTS for word in words) for words in split])


def is_negation(word: str) -> bool:
    """Tell whether a word is a negation or a word of contrast."""
    small = word.lower().replace("\u2019", "'")
    return small in NEGATIONS or small in CONTRASTS or small.endswith("n't")


def find_negated(words: Sequence[str], opinions: Collection[str]) -> tuple[int, int] | None:
    """Return the places of the last negation or contrast of an opinion word, and of that word."""
    for source in reversed(range(len(words))):
        if is_negation(words[source]):
            target = find_opinion(words[source + 1 : source + 1 + REACH], opinions)
            if target is not None:
                return source, source + 1 + target
    return None


def find_opinion(words: Sequence[str], opinions: Collection[str]) -> int | None:
    """Return the place of the first opinion word, if there is one."""
    return next((place for place, word in enumerate(words) if word.lower() in opinions), None)


def draw_sentences(texts: Sequence[str], opinions: Collection[str], count: int) -> list[str]:
    """Draw different sentences: half negate an opinion; others have one or, if too few, none."""
    kinds: dict[str, list[str]] = {"negated": [], "opinion": [], "plain": [], "short": []}
    for sentence in dict.fromkeys(part for text in texts for part in split_sentences(text)):
        kinds[_kind(sentence, opinions)].append(sentence)
    others = sum(len(found) for kind, found in kinds.items() if kind != "negated")
    rng, drawn = np.random.default_rng(0), list[str]()
    for kind, found in kinds.items():
        most = max(count // 2, count - others) if kind == "negated" else count - len(drawn)
        drawn += [found[row] for row in np.sort(rng.permutation(len(found))[:most])]
    if not drawn:
        raise UserError("No text has a word to study attention with.")
    return drawn


def _kind(sentence: str, opinions: Collection[str]) -> str:
    words = [sentence[a:b] for a, b in find_words(sentence)]
    if len(words) < SHORTEST:
        return "short"
    if find_negated(words, opinions):
        return "negated"
    return "plain" if find_opinion(words, opinions) is None else "opinion"
