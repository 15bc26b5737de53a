"""Write what the package `entmax` computes, for the tests.

    python tests/oracles/make_entmax.py

needs PyTorch and entmax (made with 2.13 and 1.3) and writes `entmax.npz`
beside this file. The tests read the file alone. It holds scores `(7, 11)`, of
which some are equal, and the sparsemax of each row.
"""

from pathlib import Path

import entmax
import numpy as np
import torch


def main():
    scores = np.random.default_rng(0).normal(size=(7, 11)).astype("float32")
    scores *= np.array([[0.01], [0.1], [0.5], [1], [2], [10], [0]], "float32")
    scores[3, :4] = scores[3, 0]
    weights = entmax.sparsemax(torch.tensor(scores), dim=-1).numpy()
    path = Path(__file__).parent / "entmax.npz"
    np.savez_compressed(path, scores=scores, sparsemax=weights)


if __name__ == "__main__":
    main()
