from d2l_attention.heatmaps import (
    alignment_error_rate,
    alignment_from_attention,
    read_pharaoh,
)
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

LINKS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9)


def test_pharaoh_lines_become_sets_of_links(tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1-2 2-1\n\n10-7\n")
    expected = [{(0, 0), (1, 2), (2, 1)}, set(), {(10, 7)}]
    assert read_pharaoh(path) == expected
    assert read_pharaoh(["0-0 1-2 2-1", "", "10-7"]) == expected


@pytest.mark.parametrize("link", ["1", "a-b", "1-", "-1-2", "1–2"])
def test_what_is_no_link_is_named_with_its_line(link):
    with pytest.raises(ValueError, match=f"Line 2.*'{link}'"):
        read_pharaoh(["0-0", f"0-0 {link}"])


def test_the_rate_by_hand():
    sure = [{(0, 0), (1, 1)}, {(0, 1)}]
    possible = [{(2, 1)}, set()]
    found = [{(0, 0), (2, 1), (2, 2)}, {(0, 1)}]
    # |A| = 4, |S| = 3, |A ∩ S| = 2, |A ∩ P| = 3 with P ⊇ S
    expected = 1 - (2 + 3) / (4 + 3)
    assert alignment_error_rate(sure, possible, found) == pytest.approx(
        expected
    )


@given(LINKS, LINKS)
def test_it_lies_between_equal_and_disjoint(sure, found):
    if sure or found:
        rate = alignment_error_rate([sure], None, [found])
        assert 0 <= rate <= 1
        assert (rate == 0) == (sure == found)
        assert (rate == 1) == (not sure & found)


@given(LINKS, LINKS)
def test_a_possible_link_is_no_error_and_not_asked_for(sure, extra):
    if sure:
        assert alignment_error_rate([sure], [extra], [sure | extra]) == 0
        assert alignment_error_rate([sure], [extra], [sure]) == 0


def test_lists_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="1 sure, 1 possible, 2 hypothesis"):
        alignment_error_rate([{(0, 0)}], None, [set(), set()])
    with pytest.raises(ValueError, match="no link"):
        alignment_error_rate([set()], None, [set()])


def test_links_are_source_then_target_of_the_largest_weight():
    weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0]])
    assert alignment_from_attention(weights) == {(1, 0), (0, 1)}


def test_weights_of_another_rank_are_refused():
    with pytest.raises(ValueError, match=r"\(1, 2, 3\)"):
        alignment_from_attention(np.zeros((1, 2, 3)))
