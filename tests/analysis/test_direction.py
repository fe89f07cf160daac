import numpy as np
import pytest

from sentigeo.analysis.maps import class_direction, fisher_ratio
from sentigeo.errors import UserError

VECTORS = np.array([[0.0, 1.0], [0.0, 3.0], [4.0, 1.0], [4.0, 3.0]])
LABELS = np.array([0, 0, 1, 1])


def test_class_means_lie_at_one_and_minus_one():
    direction = class_direction(VECTORS, LABELS)
    assert direction.place(VECTORS).tolist() == [-1, -1, 1, 1]
    assert direction.place(np.array([[2.0, 99.0], [5.0, 0.0]])).tolist() == [0, 1.5]


def test_direction_does_not_depend_on_the_order_of_rows():
    order = [2, 0, 3, 1]
    direction = class_direction(VECTORS[order], LABELS[order])
    assert direction.axis.tolist() == class_direction(VECTORS, LABELS).axis.tolist()


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 2]])
def test_direction_needs_two_classes(labels):
    with pytest.raises(UserError, match="exactly two classes"):
        class_direction(VECTORS, np.array(labels))


def test_equal_means_have_no_direction():
    with pytest.raises(UserError, match="means are the same"):
        class_direction(VECTORS[[0, 1, 0, 1]], LABELS)


def test_fisher_ratio():
    # means 1 and 6, variances 2 and 8
    positions = np.array([0.0, 2.0, 4.0, 8.0])
    assert fisher_ratio(positions, LABELS) == 25 / 10
