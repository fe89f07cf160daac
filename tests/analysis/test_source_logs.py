import pytest

from sentigeo.analysis.source_logs import (
    SourceLog,
    batch_sizes,
    compare_epochs,
    implied_sizes,
    is_share,
    load_sources,
    refusal_of,
)


@pytest.mark.parametrize(
    ("rate", "n", "possible"),
    [(0.5385, 13, True), (0.9462, 13, False), (0.9231, 13, True), (0.3333, 3, True),
     (0.3334, 3, False), (1.0, 7, True)],
)  # fmt: skip
def test_a_printed_rate_is_some_number_of_hits(rate, n, possible):
    assert is_share(rate, n) == possible


def test_sizes_that_rates_leave():
    assert implied_sizes([0.5, 0.25], 12) == [4, 8, 12]
    assert implied_sizes([0.3333], 5) == [3]
    assert implied_sizes([0.1234], 20) == []


def test_batch_sizes_that_make_so_many_steps():
    assert batch_sizes(10, 3) == [3, 4]  # 3 + 3 + 3 with one left over, 4 + 4 + 2
    assert batch_sizes(56, 8) == [7]
    assert batch_sizes(66, 16) == [4]


def make_log(*rates, texts):
    return SourceLog(1, {"a": texts}, {}, [], [], [], list(rates))


def test_last_and_best_epochs():
    logs = {"without": make_log(0.75, 0.99, 0.0, texts=4), "with": make_log(1.0, 0.5, texts=4)}
    assert [log.best for log in logs.values()] == [0, 0]  # 0.99 of 4 texts cannot be
    found = compare_epochs(logs)
    assert found[["without", "with"]].to_numpy().tolist() == [
        ["0 of 4", "2 of 4"], ["3 of 4", "4 of 4"]
    ]  # fmt: skip
    # By hand: of C(8, 2) = 28 ways to put 2 hits, 2 * 6 have both on one side.
    assert found["p"].tolist() == pytest.approx([12 / 28, 1.0])


def test_the_sources_figures_are_whole():
    documents, logs, others = load_sources()
    assert documents["id"].tolist() == ["000", "001", "002", "003", "004"]
    assert not documents.isna().any().any()
    for log in logs.values():
        kinds = log.loss, log.accuracy, log.val_loss, log.val_accuracy
        assert {len(kind) for kind in kinds} == {6}
        recalled = sum(log.recall[name] * count for name, count in log.validation.items())
        assert round(recalled) == log.hits(-1)  # the report below the log says the same
    assert others == {
        "texts": 5008, "validation_share": 0.2, "states": 13, "first_of_slice": 9,
        "sentence": "Blew my mind how bad it was. What a waste.",
    }  # fmt: skip


def test_refusals_are_told():
    assert refusal_of(int, "5") == ""
    assert "invalid literal" in refusal_of(int, "five")
