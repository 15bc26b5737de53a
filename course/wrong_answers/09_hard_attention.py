"""Answers with which the checks of chapter 09 are tried, right and wrong."""


# %% exercise 2 | this is the mean reward
# The baseline of the text, which is near the best one.
def best_baseline(p, reward):
    return p @ reward


# %% exercise 2 | how often is each place drawn
# All places count alike.
def best_baseline(p, reward):
    return np.mean(reward)


# %% exercise 2 | weigh each reward by p_z and by
# The length of 1_z - p is not squared.
def best_baseline(p, reward):
    length = np.sum((np.eye(len(p)) - p) ** 2, axis=1) ** 0.5
    return np.sum(p * length * reward) / np.sum(p * length)


# %% exercise 2 | the variance still has the slope
# A search among the baselines of the text's figure.
def best_baseline(p, reward):
    size = np.sum((np.eye(len(p)) - p) ** 2, axis=1)
    grid = np.linspace(-4, 1, 5001)
    return grid[np.argmin([p * size @ (reward - b) ** 2 for b in grid])]


# %% exercise 2 | a number
# The best baseline of each place: its own reward.
def best_baseline(p, reward):
    return np.array(reward)


# %% exercise 2 | right
# With keras.ops, whose result is a tensor without axes.
def best_baseline(p, reward):
    p = ops.convert_to_tensor(p)
    size = 1 - 2 * p + ops.sum(p**2)
    return ops.sum(p * size * reward) / ops.sum(p * size)


# %% exercise 3 | moves with its own reward
# The mean of all rewards.
def leave_one_out(rewards):
    return np.full(len(rewards), np.mean(rewards))


# %% exercise 3 | by how many others do you divide
# The own reward is left out of the sum, and counted in the divisor.
def leave_one_out(rewards):
    rewards = np.asarray(rewards)
    return (np.sum(rewards) - rewards) / len(rewards)


# %% exercise 3 | should count alike
# Judged by the draw before, as batches are in the text.
def leave_one_out(rewards):
    return np.roll(rewards, 1)


# %% exercise 3 | one baseline for each draw
# One baseline for all draws.
def leave_one_out(rewards):
    return np.mean(rewards[1:])


# %% exercise 3 | two draws are two draws
# All draws with the same reward are left out.
def leave_one_out(rewards):
    means = []
    for reward in rewards:
        others = [r for r in rewards if r != reward]
        means.append(sum(others) / len(others) if others else reward)
    return np.array(means)


# %% exercise 3 | the mean of whole numbers need not be whole
# The means are put into an array of the rewards' own kind.
def leave_one_out(rewards):
    means = np.zeros_like(rewards)
    for i in range(len(rewards)):
        means[i] = np.delete(rewards, i).mean()
    return means


# %% exercise 3 | right
# In float32.
def leave_one_out(rewards):
    rewards = ops.convert_to_tensor(rewards, "float32")
    return (ops.sum(rewards) - rewards) / (len(rewards) - 1)


# %% exercise 4 | sum over the places
# The mean over the places, too.
def enumerated_loss(probabilities, rewards):
    return -ops.mean(probabilities * rewards)


# %% exercise 4 | the sign
# The mean reward itself, which training would make small.
def enumerated_loss(probabilities, rewards):
    return ops.mean(ops.sum(probabilities * rewards, axis=-1))


# %% exercise 4 | no gradient reaches the rewards
# The rewards are cut off, as in the advantage of the text.
def enumerated_loss(probabilities, rewards):
    rewards = ops.stop_gradient(rewards)
    return -ops.mean(ops.sum(probabilities * rewards, axis=-1))


# %% exercise 4 | no gradient reaches the scores
# The probabilities are cut off.
def enumerated_loss(probabilities, rewards):
    probabilities = ops.stop_gradient(probabilities)
    return -ops.mean(ops.sum(probabilities * rewards, axis=-1))


# %% exercise 4 | this is -log p(y)
# The logarithm of the mean, not the mean of the logarithms.
def enumerated_loss(probabilities, rewards):
    right = ops.sum(probabilities * ops.exp(rewards), axis=-1)
    return -ops.mean(ops.log(right))


# %% exercise 4 | use keras.ops
# NumPy computes the right number, and forgets how.
def enumerated_loss(probabilities, rewards):
    return -np.mean(np.sum(np.array(probabilities) * np.array(rewards), -1))


# %% exercise 4 | average the batch
# A loss for each example.
def enumerated_loss(probabilities, rewards):
    return -ops.sum(probabilities * rewards, axis=-1)


# %% exercise 4 | the gradient in the scores is not
# The value of J, and the gradient of the estimator's second term twice.
def enumerated_loss(probabilities, rewards):
    mean = ops.sum(probabilities * rewards, axis=-1)
    weights = ops.stop_gradient(probabilities)
    bridge = ops.sum(weights * rewards * ops.log(probabilities), axis=-1)
    return -ops.mean(mean + bridge - ops.stop_gradient(bridge))


# %% exercise 4 | right
# Two loops.
def enumerated_loss(probabilities, rewards):
    rows, places = probabilities.shape
    total = 0.0
    for b in range(rows):
        for s in range(places):
            total = total - probabilities[b, s] * rewards[b, s]
    return total / rows
