"""Every layer of a model under a name of its own."""

from collections import Counter, deque


def name_layers(model):
    """The layers in a model, at any depth, by the names on the way to them.

    A layer is told from another by identity: two submodels that each hold a
    layer `attention` give `encoder/attention` and `decoder/attention`. Where
    parts of one layer share a name, the second is called `name:2`. A layer
    that is reached on several ways has the shortest of their names. The
    model itself has its name, or `name:0` if a part of it has that.

    Returns:
        Dict of path to layer.
    """
    paths = {id(model): model.name}
    layers = {}
    waiting = deque([("", model)])
    while waiting:
        way, layer = waiting.popleft()
        seen = Counter()
        for part in parts_of(layer):
            seen[part.name] += 1
            if id(part) in paths:
                continue
            path = f"{way}{part.name}"
            if seen[part.name] > 1:
                path += f":{seen[part.name]}"
            paths[id(part)] = path
            layers[path] = part
            waiting.append((f"{path}/", part))
    taken = model.name in layers
    return {f"{model.name}:0" if taken else model.name: model} | layers


def parts_of(layer):
    """The layers that a layer or model holds, without theirs.

    Keras has this walk as a private method only: its public `model.layers`
    lists the parts of a model, and other layers have no such list.
    """
    return layer._flatten_layers(include_self=False, recursive=False)
