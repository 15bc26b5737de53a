"""Wrong answers to the exercises of chapter 23; each check refuses them."""


# %% exercise 1 | take logarithms
# A straight line through both points, without logarithms.
def meeting(lengths, seconds, others):
    a, c = np.polyfit(lengths, seconds, 1)
    b, d = np.polyfit(lengths, others, 1)
    return (d - c) / (a - b) if abs(a - b) > 1e-6 else None


# %% exercise 1 | take logarithms
# The exponents are taken to be 2 and 1, whatever was measured.
def meeting(lengths, seconds, others):
    if np.isclose(seconds[1] / seconds[0], others[1] / others[0]):
        return None
    return (others[0] / lengths[0]) / (seconds[0] / lengths[0] ** 2)


# %% exercise 1 | take logarithms
# The natural logarithm is undone by a power of ten.
def meeting(lengths, seconds, others):
    a, c = np.polyfit(np.log(lengths), np.log(seconds), 1)
    b, d = np.polyfit(np.log(lengths), np.log(others), 1)
    return 10 ** ((d - c) / (a - b)) if abs(a - b) > 1e-6 else None


# %% exercise 1 | lengths may differ by any factor
# The second length is taken to be four times the first.
def meeting(lengths, seconds, others):
    a = np.log(seconds[1] / seconds[0]) / np.log(4)
    b = np.log(others[1] / others[0]) / np.log(4)
    if abs(a - b) < 1e-6:
        return None
    return lengths[0] * (others[0] / seconds[0]) ** (1 / (a - b))


# %% exercise 1 | parallel lines never meet
# Parallel lines are said to meet at infinity.
def meeting(lengths, seconds, others):
    a, c = np.polyfit(np.log(lengths), np.log(seconds), 1)
    b, d = np.polyfit(np.log(lengths), np.log(others), 1)
    return np.inf if abs(a - b) < 1e-6 else np.exp((d - c) / (a - b))


# %% exercise 1 | take logarithms
# The sign of the intercepts is turned round.
def meeting(lengths, seconds, others):
    a, c = np.polyfit(np.log(lengths), np.log(seconds), 1)
    b, d = np.polyfit(np.log(lengths), np.log(others), 1)
    return np.exp((c - d) / (a - b)) if abs(a - b) > 1e-6 else None


# %% exercise 2 | the first token must matter
# The most frequent label for everybody.
def first_token_rule(tokens, labels, new_tokens):
    return np.full(len(new_tokens), np.bincount(labels).argmax())


# %% exercise 2 | equal first tokens get equal answers
# The nearest example answers, so all tokens are read.
def first_token_rule(tokens, labels, new_tokens):
    same = (new_tokens[:, None] == tokens).sum(axis=2)
    return labels[same.argmax(axis=1)]


# %% exercise 2 | the most frequent is 9
# The first example with this token answers.
def first_token_rule(tokens, labels, new_tokens):
    answers = []
    for token in new_tokens[:, 0]:
        same = labels[tokens[:, 0] == token]
        answers.append(same[0] if len(same) else np.bincount(labels).argmax())
    return np.array(answers)


# %% exercise 2 | the most frequent is 9
# The mean of the labels, rounded.
def first_token_rule(tokens, labels, new_tokens):
    answers = []
    for token in new_tokens[:, 0]:
        same = labels[tokens[:, 0] == token]
        answers.append(round((same if len(same) else labels).mean()))
    return np.array(answers)


# %% exercise 2 | token 4 was never met
# An unknown first token is answered with 0.
def first_token_rule(tokens, labels, new_tokens):
    answers = []
    for token in new_tokens[:, 0]:
        same = labels[tokens[:, 0] == token]
        answers.append(np.bincount(same).argmax() if len(same) else 0)
    return np.array(answers)


# %% exercise 2 | equally frequent
# Of equally frequent labels the largest.
def first_token_rule(tokens, labels, new_tokens):
    answers = []
    for token in new_tokens[:, 0]:
        same = labels[tokens[:, 0] == token]
        counts = np.bincount(same if len(same) else labels)
        answers.append(len(counts) - 1 - counts[::-1].argmax())
    return np.array(answers)


# %% exercise 3 | places of questions hold no answers
# The places of all questions are counted as places of answers.
def most(length, questions, window, layers=1, values=8):
    last = np.minimum(np.arange(questions) + layers * window, length - 1)
    share = np.where(questions == 1, last, last + 1) / (length - 1)
    return np.mean(share + (1 - share) / values)


# %% exercise 3 | an answer that is seen needs no guess
# Chance is added to what is found.
def most(length, questions, window, layers=1, values=8):
    last = np.minimum(np.arange(questions) + layers * window, length - 1)
    share = np.maximum(last - questions + 1, 0) / (length - questions)
    return np.mean(share) + 1 / values


# %% exercise 3 | each question has a share of its own
# All questions see what the last one sees.
def most(length, questions, window, layers=1, values=8):
    seen = min(layers * window, length - questions)
    share = seen / (length - questions)
    return share + (1 - share) / values


# %% exercise 3 | a window may be wider than all
# What lies behind the end is counted.
def most(length, questions, window, layers=1, values=8):
    last = np.arange(questions) + layers * window
    share = np.maximum(last - questions + 1, 0) / (length - questions)
    return np.mean(share + (1 - share) / values)


# %% exercise 3 | no share of seen places is below 0
# Shares below 0 are averaged with the others.
def most(length, questions, window, layers=1, values=8):
    last = np.minimum(np.arange(questions) + layers * window, length - 1)
    share = (last - questions + 1) / (length - questions)
    return np.mean(share + (1 - share) / values)


# %% exercise 3 | two layers of 5 see as far as one of 10
# A second layer is taken to see nothing more.
def most(length, questions, window, layers=1, values=8):
    last = np.minimum(np.arange(questions) + window, length - 1)
    share = np.maximum(last - questions + 1, 0) / (length - questions)
    return np.mean(share + (1 - share) / values)
