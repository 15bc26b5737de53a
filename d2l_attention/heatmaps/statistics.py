"""What heatmaps say in numbers. Links are (source, target) positions."""

from pathlib import Path

import numpy as np


def read_pharaoh(source):
    """Alignments in the Pharaoh format, a sentence a line: `0-0 1-2 2-1`.

    Args:
        source: Path of a file, or an iterable of lines.

    Returns:
        List of sets of `(source position, target position)`.

    Raises:
        ValueError: If a link is not two numbers; with the line's number.
    """
    if isinstance(source, (str, Path)):
        source = Path(source).read_text(encoding="utf-8").splitlines()
    alignments = []
    for number, line in enumerate(source, 1):
        links = set()
        for link in line.split():
            source_position, dash, target_position = link.partition("-")
            if not (source_position.isdigit() and target_position.isdigit()):
                raise ValueError(
                    f"Line {number}: a link is `source-target`, two numbers. "
                    f"Received: {link!r}."
                )
            links.add((int(source_position), int(target_position)))
        alignments.append(links)
    return alignments


def alignment_error_rate(sure, possible, hypothesis):
    """How far alignments are from gold ones, over a whole corpus.

        AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    Source: Och and Ney (2003), section 6. A are the links of `hypothesis`,
    S those of `sure`, P those of `possible` and S together.

    Args:
        sure: List of sets of links, one set a sentence.
        possible: The same for links that are allowed but not asked for, or
            None where there are none.
        hypothesis: List of sets of links.

    Returns:
        Float in [0, 1]; 0 = every sure link found and no wrong one.

    Raises:
        ValueError: If the lists differ in length or hold no link at all.
    """
    possible = sure if possible is None else possible
    if not len(sure) == len(possible) == len(hypothesis):
        raise ValueError(
            "There must be one set of links a sentence in each list. "
            f"Received: {len(sure)} sure, {len(possible)} possible, "
            f"{len(hypothesis)} hypothesis."
        )
    found = total = 0
    for s, p, a in zip(sure, possible, hypothesis, strict=True):
        found += len(a & s) + len(a & (s | p))
        total += len(a) + len(s)
    if not total:
        raise ValueError("There is no link in `sure` or `hypothesis`.")
    return 1.0 - found / total


def alignment_from_attention(weights):
    """Each target token linked to the source token it attends to most.

    Args:
        weights: Float array `(T, S)`, rows are target tokens. A row of zeros
            gives no link.

    Returns:
        Set of `(source position, target position)`.

    Raises:
        ValueError: If `weights` has not two axes.
    """
    weights = np.asarray(weights)
    if weights.ndim != 2:
        raise ValueError(
            "`weights` must be (target, source). Received: shape "
            f"{weights.shape}."
        )
    best = weights.argmax(axis=1)
    return {
        (int(source), target)
        for target, source in enumerate(best)
        if weights[target, source] > 0
    }
