"""The regression behind the learned scorer stands what corpora hold."""

import numpy as np
from wardround.knowledge.ridge import penalised_inverse


def test_a_kernel_that_is_not_positive_definite_is_penalised_until_it_can_be_inverted():
    indefinite = np.ones((60, 60), np.float32)
    indefinite[:30, 30:] = indefinite[30:, :30] = 1.7
    assert np.linalg.eigvalsh(indefinite).min() < -1
    assert np.isfinite(penalised_inverse(indefinite, 0.1)).all()


def test_the_inverse_is_exact_where_nothing_has_to_be_added():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 20)).astype(np.float32)
    matrix = half @ half.T
    found = penalised_inverse(matrix, 0.5)
    assert np.allclose(found @ (matrix + 0.5 * np.eye(20)), np.eye(20), atol=1e-3)
