"""Wrong answers to the exercises of chapter 23; each check refuses them."""


# %% exercise 1 | take logarithms
# A straight line through both points, without logarithms.
def meeting(lengths, seconds, others):
    a, c = np.polyfit(lengths, seconds, 1)
    b, d = np.polyfit(lengths, others, 1)
    return (d - c) / (a - b) if abs(a - b) > 1e-6 else None


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


# %% exercise 1 | exponents that differ by 0.02 do meet
# Exponents that differ by less than a tenth are taken for equal.
def meeting(lengths, seconds, others):
    a, log_c = np.polyfit(np.log(lengths), np.log(seconds), 1)
    b, log_d = np.polyfit(np.log(lengths), np.log(others), 1)
    return None if abs(a - b) < 0.1 else np.exp((log_d - log_c) / (a - b))


# %% exercise 1 | a point below 1 is a point
# Lines that meet below one token are taken not to meet.
def meeting(lengths, seconds, others):
    a, log_c = np.polyfit(np.log(lengths), np.log(seconds), 1)
    b, log_d = np.polyfit(np.log(lengths), np.log(others), 1)
    if abs(a - b) < 1e-6 or (log_d - log_c) / (a - b) < 0:
        return None
    return np.exp((log_d - log_c) / (a - b))


# %% exercise 1 | right
# By the ratio of both, in plain numbers.
def meeting(lengths, seconds, others):
    (n, m), (a, b), (c, d) = map(list, (lengths, seconds, others))
    slope = (np.log(b / d) - np.log(a / c)) / (np.log(m) - np.log(n))
    return float(n * (c / a) ** (1 / slope)) if abs(slope) >= 1e-6 else None


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


# %% exercise 2 | not that of the commonest first token
# An unknown first token is answered like the commonest first token.
def first_token_rule(tokens, labels, new_tokens):
    first, answers = tokens[:, 0], []
    for token in new_tokens[:, 0]:
        if token not in first:
            token = np.bincount(first).argmax()
        answers.append(np.bincount(labels[first == token]).argmax())
    return np.array(answers)


# %% exercise 2 | nor that of a neighbour
# An unknown first token is answered like the next one that is known.
def first_token_rule(tokens, labels, new_tokens):
    known = np.unique(tokens[:, 0])
    rule = [np.bincount(labels[tokens[:, 0] == x]).argmax() for x in known]
    rule.append(np.bincount(labels).argmax())
    return np.array(rule)[np.searchsorted(known, new_tokens[:, 0])]


# %% exercise 2 | right
# A table of counts, for all tokens at once.
def first_token_rule(tokens, labels, new_tokens):
    tokens, labels, new_tokens = map(np.asarray, (tokens, labels, new_tokens))
    table = np.zeros((max(tokens.max(), new_tokens.max()) + 1, 10), int)
    np.add.at(table, (tokens[:, 0], labels), 1)
    table[table.sum(axis=1) == 0] = table.sum(axis=0)
    return table.argmax(axis=1)[new_tokens[:, 0]]


# %% exercise 2 | right
# Counts in a dict, one example after the other.
def first_token_rule(tokens, labels, new_tokens):
    counts, whole = {}, {}
    for row, label in zip(tokens.tolist(), labels.tolist()):
        for count in (counts.setdefault(row[0], {}), whole):
            count[label] = count.get(label, 0) + 1
    answers = []
    for row in new_tokens.tolist():
        count = counts.get(row[0], whole)
        answers.append(min(count, key=lambda label: (-count[label], label)))
    return answers


# %% exercise 2 | of 1 and 9 the smaller
# Of labels that are equally frequent overall the one that was seen first.
def first_token_rule(tokens, labels, new_tokens):
    answers = []
    for token in new_tokens[:, 0]:
        same = np.sort(labels[tokens[:, 0] == token]).tolist()
        same = same or labels.tolist()
        answers.append(max(same, key=same.count))
    return answers


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


# %% exercise 3 | its share is 0
# The mean question stands for all.
def most(length, questions, window, layers=1, values=8):
    last = min((questions - 1) / 2 + layers * window, length - 1)
    share = max(last - questions + 1, 0) / (length - questions)
    return share + (1 - share) / values


# %% exercise 3 | right
# One place after the other.
def most(length, questions, window, layers=1, values=8):
    total = 0
    for t in range(questions):
        for place in range(questions, length):
            total += 1 if place <= t + layers * window else 1 / values
    return total / questions / (length - questions)
