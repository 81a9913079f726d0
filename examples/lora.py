"""Low-rank adaptation (LoRA) of an Equinox network, whose weights become sums of a dense and a low-rank array.

LoRA adapts a trained network to other data by low-rank changes of its weights: ``W + u @ v.T``, where W is frozen and
only the thin factors u and v are trained. Here such a weight is an array, ``sa.Sum(W, sa.LowRank(u, v))``, which
replaces W. The network is Equinox's unchanged `MLP`, which computes ``weight @ x``. `sa.structured` runs it on these
arrays, and Optax trains their factors.

    python examples/lora.py [--width 512] [--rank 4] [--steps 150]

The network learns the handwritten digits of scikit-learn, and is then adapted to rotated digits.

E. Hu and others, "LoRA: Low-Rank Adaptation of Large Language Models", 2021.
"""

import argparse
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from checks import Checks
from sklearn.datasets import load_digits

import structarrays as sa

jax.config.update("jax_enable_x64", True)

TOLERANCE = 1e-10
BATCH = 128


# ---- the network and its training: Equinox and Optax, as in their own documentation -------------------------------------


def forward(model, images):
    return jax.vmap(model)(images)


def loss(trained, fixed, run, images, labels):
    """Return the cross-entropy of a model in two parts; `run` is `forward`, or `forward` on structured arrays."""
    logits = run(eqx.combine(trained, fixed), images)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))


def train(model, trained, run, images, labels, steps, rate):
    """Train the parameters that `trained` marks by Adam; return the model and the seconds of the first and other steps."""
    trained, fixed = eqx.partition(model, trained)
    optimizer = optax.adam(rate)

    @eqx.filter_jit
    def step(trained, state, chosen):
        gradient = eqx.filter_grad(loss)(trained, fixed, run, images[chosen], labels[chosen])
        updates, state = optimizer.update(gradient, state, trained)
        return eqx.apply_updates(trained, updates), state

    state, rng, start, first = optimizer.init(trained), np.random.default_rng(0), time.perf_counter(), 0.0
    for k in range(steps):
        chosen = rng.choice(images.shape[0], min(BATCH, images.shape[0]), replace=False)
        trained, state = jax.block_until_ready(step(trained, state, chosen))
        if k == 0:
            first = time.perf_counter() - start
    return eqx.combine(trained, fixed), first, time.perf_counter() - start - first


def accuracy(run, model, images, labels) -> float:
    return float(jnp.mean(jnp.argmax(run(model, images), axis=1) == labels))


# ---- weights ------------------------------------------------------------------------------------------------------------


def weights(model):
    return [layer.weight for layer in model.layers]


def adapted(model, rank: int, key):
    """Return the model with a low-rank term, initially zero, in each weight.

    The weight must be a `Sum`: ``W + sa.LowRank(u, v)`` is a dense array, because a sum would not save memory.
    """
    keys = jax.random.split(key, len(model.layers))
    sums = []
    for w, k in zip(weights(model), keys, strict=True):
        m, n = w.shape
        sums.append(sa.Sum(w, sa.LowRank(jnp.zeros((m, rank)), jax.random.normal(k, (n, rank)) / rank)))
    return eqx.tree_at(weights, model, sums)


def low_rank(model):
    """Return a pytree of booleans that marks the low-rank factors of a model, for `eqx.partition`."""

    def mark(x):
        return jax.tree.map(lambda _: isinstance(x, sa.LowRank), x)

    return jax.tree.map(mark, model, is_leaf=lambda x: isinstance(x, sa.LowRank))


def merged(model):
    """Return the model with ordinary arrays as weights."""
    return eqx.tree_at(weights, model, [w.to_jax() for w in weights(model)])


def factors(model):
    """Return the pairs of `u` and `v` of a model or of its gradient."""
    return [(term.u.to_jax(), term.v.to_jax()) for w in weights(model) for term in w.terms if type(term) is sa.LowRank]


def count(tree) -> int:
    return sum(x.size for x in jax.tree.leaves(eqx.filter(tree, eqx.is_array)))


# ---- parts of the program -----------------------------------------------------------------------------------------------


def data():
    """Return the images as rows, upright and rotated, and their labels; the first half is for training."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(digits.target.size)
    images, labels = digits.images[order] / 16, jnp.asarray(digits.target[order])
    lying = np.rot90(images, axes=(1, 2))
    return jnp.asarray(images.reshape(-1, 64)), jnp.asarray(lying.reshape(-1, 64)), labels


def compare(model, images, labels, check) -> None:
    """Compare values and gradients with the same network with dense weights, by Equinox alone."""
    run = sa.structured(forward)
    trained, fixed = eqx.partition(model, low_rank(model))
    with sa.densify("error"), sa.record() as log:
        logits = run(model, images)
        gradient = eqx.filter_grad(loss)(trained, fixed, run, images, labels)
    dense = merged(model)
    error = float(jnp.max(jnp.abs(logits - forward(dense, images))))
    check(error <= TOLERANCE, f"the network gives what it gives with merged weights, W + u @ v.T ({error:.0e})")
    by_weights = weights(eqx.filter_grad(loss)(*eqx.partition(dense, eqx.is_array), forward, images, labels))
    expected = [(g @ v, g.T @ u) for g, (u, v) in zip(by_weights, factors(model), strict=True)]
    error = max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*map(jax.tree.leaves, (factors(gradient), expected))))
    check(error <= TOLERANCE, f"the gradient by u and v is that by W, times v and u ({error:.0e})")
    products = [e for e in log.events if e.function == "matmul" and e.operands[0].startswith("Sum")]
    sizes = {f"Dense {shape}" for w in weights(model) for shape in (w.shape, w.shape[::-1])}
    formed = [e for e in log.events if e.result in sizes]
    check(
        not log.densifications and len(products) >= len(model.layers) and not formed,
        f"no weight was merged: {len(products)} products with a Sum, no array of a weight's shape made",
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=512, help="of the two hidden layers")
    parser.add_argument("--rank", type=int, default=4, help="of the changes")
    parser.add_argument("--steps", type=int, default=150, help="of either training")
    arguments = parser.parse_args()
    if min(arguments.width, arguments.rank, arguments.steps) < 1:
        parser.error("--width, --rank and --steps must be positive")
    check = Checks()

    upright, lying, labels = data()
    half = labels.size // 2
    keys = jax.random.split(jax.random.key(0))
    model = eqx.nn.MLP(64, 10, arguments.width, depth=2, key=keys[0])
    print(f"1. Handwritten digits: a network of {count(model):,} parameters, trained on {half} upright images")
    model, *_ = train(model, eqx.is_array, forward, upright[:half], labels[:half], arguments.steps, 1e-3)
    before = accuracy(forward, model, lying[half:], labels[half:])
    print(f"  of the others it reads {accuracy(forward, model, upright[half:], labels[half:]):.1%},")
    print(f"  and {before:.1%} of them lying on their side")

    run = sa.structured(forward)
    start = adapted(model, arguments.rank, keys[1])
    which = low_rank(start)
    trainable = count(eqx.filter(start, which))
    print(f"\n2. Weights of the form {type(weights(start)[1]).__name__}(Dense, LowRank), of rank {arguments.rank}")
    print(f"  {trainable:,} parameters are trained, {trainable / count(model):.1%} of the network")
    with sa.densify("error"):
        found, first, others = train(start, which, run, lying[:half], labels[:half], arguments.steps, 1e-2)
    after = accuracy(run, found, lying[half:], labels[half:])
    print(
        f"  first step {first:.1f} s, compilation included; the others {1e3 * others / max(1, arguments.steps - 1):.1f} ms each"
    )
    print(f"  of the images that it has not seen it now reads {after:.1%} lying")
    check(after > before + 0.2, "it has learnt")
    same = all(bool(jnp.all(a.terms[0].to_jax() == b)) for a, b in zip(weights(found), weights(model), strict=True))
    check(same, "the weights that it had are what they were")
    print("\n3. Against the same network with merged weights, without structure")
    compare(found, lying[:half], labels[:half], check)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
