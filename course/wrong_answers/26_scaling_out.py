"""Wrong answers to the exercises of chapter 26; each check refuses them."""


# %% exercise 1 | an environment variable is a text
# A dict in place of its text.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    return {"cluster": cluster, "task": {"type": "worker", "index": index}}


# %% exercise 1 | not JSON
# Python's own form has single quotes, which JSON does not know.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return str({"cluster": cluster, "task": task})


# %% exercise 1 | the same addresses in the same order
# A worker names only the others.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    others = [p for p in ports if p != ports[index]]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in others]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | the task says which worker this is
# Workers are counted from 1.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index + 1}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | not refused: ports and index ([2000, 2001], -1)
# Python counts −1 from the end, and so does the list of ports.
def tf_config(ports, index):
    if index >= len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | not refused: ports and index ([2000, 2000], 0)
# A port that two workers have is let through.
def tf_config(ports, index):
    if not 0 <= index < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | not refused: ports and index ([2000, 2001, 2000], 1)
# Only a port of one's own is looked for among the others.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or ports.count(ports[index]) > 1:
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | a dict in JSON, not
# The text is turned into JSON twice.
def tf_config(ports, index):
    if not 0 <= index < len(ports) or len(set(ports)) < len(ports):
        raise ValueError
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps(json.dumps({"cluster": cluster, "task": task}))


# %% exercise 1 | a ValueError, not IndexError
# A list says itself that it has no such place.
def tf_config(ports, index):
    if index < 0 or len(set(ports)) < len(ports):
        raise ValueError(f"ports {ports}, index {index}")
    assert ports[index]
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | a ValueError, not AssertionError
# An assertion, which Python may skip.
def tf_config(ports, index):
    assert 0 <= index < len(ports) and len(set(ports)) == len(ports)
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task})


# %% exercise 1 | right
# Put together from pieces, with other blanks and another order.
def tf_config(ports, index):
    hosts = []
    for port in ports:
        host = "127.0.0.1:" + str(port)
        if host in hosts:
            raise ValueError("twice")
        hosts.append(host)
    if index not in range(len(hosts)):
        raise ValueError("nobody")
    task = '"task": {"index": ' + str(index) + ', "type": "worker"}'
    cluster = '"cluster":{"worker":' + json.dumps(hosts) + "}"
    return "{" + task + ",\n\n" + cluster + "}"


# %% exercise 2 | all losses over all tokens
# The mean of the workers' means.
def combine(sums, tokens, gradients, bound):
    loss = np.mean([s / max(n, 1) for s, n in zip(sums, tokens)])
    gradient = np.sum(gradients, axis=0) / sum(tokens)
    length = np.linalg.norm(gradient)
    return loss, gradient * min(1, bound / max(length, 1e-12))


# %% exercise 2 | add the gradients, divide by all tokens
# Each gradient is divided by the tokens of its own worker, as for means.
def combine(sums, tokens, gradients, bound):
    means = [g / max(n, 1) for g, n in zip(gradients, tokens)]
    gradient = np.mean(means, axis=0)
    length = np.linalg.norm(gradient)
    loss = sum(sums) / sum(tokens)
    return loss, gradient * min(1, bound / max(length, 1e-12))


# %% exercise 2 | clipping leaves it as it is
# Every gradient gets the length of the bound, short ones as well.
def combine(sums, tokens, gradients, bound):
    gradient = np.sum(gradients, axis=0) / sum(tokens)
    length = np.linalg.norm(gradient)
    return sum(sums) / sum(tokens), gradient * bound / max(length, 1e-12)


# %% exercise 2 | add first, then clip the whole
# Each worker clips its own gradient.
def combine(sums, tokens, gradients, bound):
    def clip(g):
        return g * min(1, bound / max(np.linalg.norm(g), 1e-12))

    parts = [clip(g / sum(tokens)) for g in gradients]
    return sum(sums) / sum(tokens), np.sum(parts, axis=0)


# %% exercise 2 | all numbers shrink by one factor
# Each number is clipped for itself, which turns the gradient.
def combine(sums, tokens, gradients, bound):
    gradient = np.sum(gradients, axis=0) / sum(tokens)
    return sum(sums) / sum(tokens), np.clip(gradient, -bound, bound)


# %% exercise 2 | a zero gradient stays zero
# A length of 0 divides 0 by 0.
def combine(sums, tokens, gradients, bound):
    gradient = np.sum(gradients, axis=0) / sum(tokens)
    length = np.linalg.norm(gradient)
    return sum(sums) / sum(tokens), gradient / length * min(length, bound)


# %% exercise 2 | must stay as they were
# The sum is made in the first worker's own array.
def combine(sums, tokens, gradients, bound):
    total = gradients[0]
    for g in gradients[1:]:
        total += g
    gradient = total / sum(tokens)
    length = np.linalg.norm(gradient)
    loss = sum(sums) / sum(tokens)
    return loss, gradient * min(1, bound / max(length, 1e-12))


# %% exercise 2 | divide by all tokens
# Divided by the number of workers.
def combine(sums, tokens, gradients, bound):
    gradient = sum(gradients) / len(tokens)
    length = np.linalg.norm(gradient)
    shrink = min(1, bound / max(length, 1e-12))
    return sum(sums) / sum(tokens), gradient * shrink


# %% exercise 2 | right
# A list, with TensorFlow's clipping, in 32 bits.
def combine(sums, tokens, gradients, bound):
    gradient = np.sum(gradients, axis=0, dtype="float32") / sum(tokens)
    loss = ops.sum(np.float32(sums)) / sum(tokens)
    return [loss, tf.clip_by_norm(np.float32(gradient), bound)]


# %% exercise 3 | in the time of the ring
# A parameter is counted as one byte.
def least_seconds(workers, efficiency, parameters, bandwidth):
    ring = 2 * (workers - 1) / workers * parameters / bandwidth
    return workers * ring * efficiency / (1 - efficiency)


# %% exercise 3 | in the time of the ring
# Each worker is thought to send its whole gradient to all others.
def least_seconds(workers, efficiency, parameters, bandwidth):
    exchange = (workers - 1) * 4 * parameters / bandwidth
    return workers * exchange * efficiency / (1 - efficiency)


# %% exercise 3 | in the time of the ring
# The seconds of a part, not of the whole step.
def least_seconds(workers, efficiency, parameters, bandwidth):
    ring = 2 * (workers - 1) / workers * 4 * parameters / bandwidth
    return ring * efficiency / (1 - efficiency)


# %% exercise 3 | in the time of the ring
# The limit of the speed-up is solved for `alone`, as if the parts took no time.
def least_seconds(workers, efficiency, parameters, bandwidth):
    return efficiency * workers * 8 * parameters / bandwidth


# %% exercise 3 | 1/2 is right. Solve
# The efficiency is turned upside down.
def least_seconds(workers, efficiency, parameters, bandwidth):
    ring = 2 * (workers - 1) / workers * 4 * parameters / bandwidth
    return workers * ring * (1 - efficiency) / efficiency


# %% exercise 3 | right
# Found by halving.
def least_seconds(workers, efficiency, parameters, bandwidth):
    ring = 8 * (workers - 1) / workers * parameters / bandwidth
    low, high = 0.0, 1e12
    for _ in range(300):
        alone = (low + high) / 2
        if alone < efficiency * workers * (alone / workers + ring):
            low = alone
        else:
            high = alone
    return high


# %% exercise 4 | halved for the next one
# The scale changes in the bad step itself.
def scales(finite, scale, growth):
    used, good = [], 0
    for ok in finite:
        good = good + 1 if ok else 0
        if not ok:
            scale = scale / 2
        used.append(scale)
        if good == growth:
            scale, good = scale * 2, 0
    return used


# %% exercise 4 | the count begins anew
# After a doubling the row of good steps goes on.
def scales(finite, scale, growth):
    used, good = [], 0
    for ok in finite:
        used.append(scale)
        good = good + 1 if ok else 0
        if not ok:
            scale = scale / 2
        elif good >= growth:
            scale = scale * 2
    return used


# %% exercise 4 | a bad step ends the row
# Good steps are counted, in a row or not.
def scales(finite, scale, growth):
    used, good = [], 0
    for ok in finite:
        used.append(scale)
        good += ok
        if not ok:
            scale = scale / 2
        elif good == growth:
            scale, good = scale * 2, 0
    return used


# %% exercise 4 | each bad step halves
# Only the first of several bad steps halves the scale.
def scales(finite, scale, growth):
    used, good, last = [], 0, True
    for ok in finite:
        used.append(scale)
        good = good + 1 if ok else 0
        if last and not ok:
            scale = scale / 2
        elif good == growth:
            scale, good = scale * 2, 0
        last = ok
    return used


# %% exercise 4 | steps 2 and 4 double the scale
# The doubling comes one step late.
def scales(finite, scale, growth):
    used, good = [], 0
    for ok in finite:
        used.append(scale)
        good = good + 1 if ok else 0
        if not ok:
            scale = scale / 2
        elif good > growth:
            scale, good = scale * 2, 0
    return used


# %% exercise 4 | one scale for each step
# The scale of the step after the last is added.
def scales(finite, scale, growth):
    used, good = [scale], 0
    for ok in finite:
        good = good + 1 if ok else 0
        if not ok:
            scale = scale / 2
        elif good == growth:
            scale, good = scale * 2, 0
        used.append(scale)
    return used


# %% exercise 4 | with `growth` 1
# A row of one good step is not seen.
def scales(finite, scale, growth):
    used, before = [], 0
    for ok in finite:
        used.append(scale)
        if not ok:
            scale, before = scale / 2, 0
        elif before and before + 1 >= growth:
            scale, before = scale * 2, 0
        else:
            before += 1
    return used


# %% exercise 4 | a bad step ends the row
# Every third step doubles the scale, whatever came between.
def scales(finite, scale, growth):
    used = []
    for step, ok in enumerate(finite, 1):
        used.append(scale)
        if not ok:
            scale = scale / 2
        elif step % growth == 0:
            scale = scale * 2
    return used


# %% exercise 4 | right
# One scale after the other, as they are asked for.
def scales(finite, scale, growth):
    good = 0
    for ok in finite:
        yield scale
        good = good + 1 if ok else 0
        if not ok:
            scale /= 2
        elif good % growth == 0:
            scale *= 2


# %% exercise 4 | right
# An array, whose scales are counted back from the steps.
def scales(finite, scale, growth):
    used = np.full(len(finite), float(scale))
    row = 0
    for step, ok in enumerate(finite):
        row = (row + 1) % growth if ok else 0
        if not ok:
            used[step + 1 :] *= 0.5
        elif row == 0:
            used[step + 1 :] *= 2
    return used
