"""The linter says the minutes, and names what would not fit."""

from course import lint

CHAPTER = """---
kernelspec: {{name: python3, display_name: Python 3}}
---

# 99. A title

**Time:** about {minutes} minutes

```{{code-cell}}
:tags: [setup]
import numpy as np
```

Seven words stand in this short paragraph. $$x$$

<details><summary>Answer</summary>

Folded words do not count.

</details>

+++ {{"tags": ["predict"]}}

**Predict.** How many?

<details><summary>Answer</summary>

Three.

</details>

```{{code-cell}}
x = np.ones(3)

assert x.sum() == 3
```

```{{code-cell}}
:tags: [figure]
display_figure(x)
```

```{{code-cell}}
:tags: [claims]
assert x is not None
```

{more}

+++

## Exercises

Words of exercises do not count.

```{{code-cell}}
:tags: [exercise]
x = 1
```
"""


def chapter(
    tmp_path, minutes=3, more="Eight words are in this paragraph of mine."
):
    path = tmp_path / "99_a_title.md"
    path.write_text(CHAPTER.format(minutes=minutes, more=more))
    return path


def test_what_is_shown_is_counted(tmp_path):
    counts = lint.count(chapter(tmp_path))
    assert counts._replace(minutes=0) == lint.Counts(
        words=27, cells=7, lines=2, asserts=1, cut=0, minutes=0, stated=3
    )
    # A formula, a figure, and a prediction with the three words of its fold.
    wanted = (27 + 3) / 150 + 2 / 10 + 0.5 + 0.75 + 1.5
    assert abs(counts.minutes - wanted) < 1e-9


def test_what_would_not_fit_is_named(tmp_path):
    assert lint.problems(chapter(tmp_path)) == []
    (said,) = lint.problems(chapter(tmp_path, 60, "many " * 600))
    assert said == "99: it states 60 minutes; reading it takes 7."
    asserts = "```{code-cell}\n" + "assert x is x\n" * 3 + "```"
    (said,) = lint.problems(chapter(tmp_path, more=asserts))
    assert said == "99: it shows 4 asserts."
    wide = "```{code-cell}\ny = 1  # " + "x" * 73 + "\n```"
    (said,) = lint.problems(chapter(tmp_path, more=wide))
    assert said == "99: 1 lines are too wide for the book."
    figure = "```{code-cell}\nfig = figure(figsize=(7.5, 3))\n```"
    (said,) = lint.problems(chapter(tmp_path, more=figure))
    assert said == "99: 1 figures are wider than 7 inches."
