"""Small random arrays of every structure, for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from .._core.array.dense import Dense
from .._structures.banded.array import Banded, bands
from .._structures.banded.diagonal import Diagonal, Identity
from .._structures.fill.array import Fill

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias, TypeVar

    from .._core.array.base import Array
    from .._core.typing import DTypeLike, Shape

    Sampler: TypeAlias = Callable[["Numbers", Shape, Shape, str], Array | None]
    """A function that `sampler` registers: (numbers, batch shape, core shape, requirement) to an array, or None."""

    S = TypeVar("S", bound=Sampler)

SAMPLERS: dict[str, Sampler] = {}
"""The sampler of each structure, by name."""

REQUIREMENTS = ("", "invertible", "hermitian", "positive definite")

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


class Numbers:
    """Reproducible random numbers of one dtype.

    Parameters
    ----------
    seed : int
        The seed of the generator.
    dtype : dtype
        The dtype of the numbers.
    low, high : float
        The interval of real numbers and integers. Unsigned integers begin at 0. Real and imaginary parts of complex
        numbers are drawn from the same interval.
    special : bool
        Whether the numbers include NaN, infinities and zeros of both signs (for inexact dtypes).

    Examples
    --------
    >>> from structarrays.testing import Numbers
    >>> numbers = Numbers(0, "int32", low=1, high=3)
    >>> bool(((numbers((5,)) >= 1) & (numbers((5,)) <= 3)).all())
    True
    """

    def __init__(
        self, seed: int, dtype: DTypeLike, low: float = -2.0, high: float = 2.0, special: bool = False
    ) -> None:
        self.generator = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.low, self.high, self.special = low, high, special

    def __call__(self, shape: Shape) -> np.ndarray:
        """Return an array of random numbers."""
        kind = self.dtype.kind
        if kind == "b":
            return np.asarray(self.generator.integers(0, 2, shape), bool)
        if kind in "iu":
            low = int(np.ceil(self.low if kind == "i" else max(0, self.low)))
            return np.asarray(self.generator.integers(low, int(self.high) + 1, shape), self.dtype)
        values = self._floats(shape)
        if kind == "c":
            values = values + 1j * self._floats(shape)
        return np.asarray(values, self.dtype)

    def real(self, shape: Shape) -> np.ndarray:
        """Return an array of random numbers without an imaginary part."""
        return np.asarray(self(shape).real, self.dtype)

    def _floats(self, shape: Shape) -> np.ndarray:
        values = np.asarray(self.generator.uniform(self.low, self.high, shape))
        if self.special:
            chosen = self.generator.uniform(size=shape) < 0.5
            values = np.where(chosen, self.generator.choice(SPECIAL, shape), values)
        return values


def sampler(structure: str) -> Callable[[S], S]:
    """Register a function that returns random arrays of a structure.

    Parameters
    ----------
    structure : str
        The name that `sample` accepts: the name of the class, or this name followed by a remark.

    Returns
    -------
    callable
        A decorator of a function ``(numbers, batch, core, requires)``, which returns an array of shape ``batch + core``
        with parameters drawn from `numbers`, or None if there is no such array. `requires` is one of `REQUIREMENTS`.

    Examples
    --------
    >>> import structarrays as sa
    >>> from structarrays.testing import sample, sampler
    >>> class Scalar(sa.Identity):
    ...     __slots__ = ()
    >>> @sampler("Scalar")
    ... def draw_mine(numbers, batch, core, requires):
    ...     return Scalar(core, numbers(batch)) if core[0] == core[1] else None
    >>> sample(Scalar, (2, 2)).shape
    (2, 2)
    """

    def register(function: S) -> S:
        SAMPLERS[structure] = function
        return function

    return register


def sample(
    structure: str | type[Array],
    core: Sequence[int],
    *,
    batch: Sequence[int] = (),
    dtype: DTypeLike = "float64",
    requires: str = "",
    seed: int = 0,
    domain: tuple[float, float] = (-2.0, 2.0),
    special: bool = False,
) -> Array | None:
    """Return a random array of a structure.

    Parameters
    ----------
    structure : str or type
        A name in `SAMPLERS`, or a class. ``"Diagonal + background"`` has a stored background.
    core : tuple of int
        The core shape.
    batch : tuple of int
        The batch shape.
    dtype : dtype
        The dtype of the elements.
    requires : str
        One of `REQUIREMENTS`.
    seed : int
        The seed of the random numbers.
    domain : tuple of float
        The interval from which parameters are drawn.
    special : bool
        Whether the random numbers include NaN, infinities and signed zeros.

    Returns
    -------
    Array or None
        The array, or None if the structure has no such array.

    Raises
    ------
    ValueError
        If the structure is not registered, or the requirement is unknown.

    Examples
    --------
    >>> from structarrays.testing import sample
    >>> x = sample("Banded", (4, 4), batch=(2,), dtype="float32")
    >>> x.shape, x.offsets
    ((2, 4, 4), (-2, 0, 1))
    """
    name = structure if isinstance(structure, str) else structure.__name__
    if name not in SAMPLERS:
        raise ValueError(f"structure must be one of {', '.join(SAMPLERS)} (see sampler), got {name!r}")
    if requires not in REQUIREMENTS:
        raise ValueError(f"requires must be one of {REQUIREMENTS}, got {requires!r}")
    if 0 in core:
        requires = ""  # a matrix without elements meets each requirement
    return SAMPLERS[name](Numbers(seed, dtype, *domain, special=special), tuple(batch), tuple(core), requires)


# ---- dense and filled ----------------------------------------------------------------------------------------------


def dominant(numbers: Numbers, batch: Shape, n: int, requires: str) -> np.ndarray:
    """Return a dense square array, ``batch + (n, n)``, that satisfies `requires` by a dominant diagonal.

    Examples
    --------
    >>> from structarrays.testing import Numbers
    >>> from structarrays.testing.arrays import dominant
    >>> dominant(Numbers(0, "float64"), (), 3, "invertible").shape
    (3, 3)
    """
    off = numbers((*batch, n, n)) / n
    if requires != "invertible":
        off = (off + np.swapaxes(off, -1, -2).conj()) / 2
    if requires != "hermitian":
        off = off + (numbers.high + 1 + np.arange(n) / n) * np.eye(n)
    return np.asarray(off, numbers.dtype)


@sampler("Dense")
def _draw_dense(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Dense:
    if not requires:
        return Dense.make((jnp.asarray(numbers(batch + core)),))
    return Dense.make((jnp.asarray(dominant(numbers, batch, core[-1], requires)),))


@sampler("Fill")
def _draw_fill(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Fill:
    # Larger constant matrices than 1 × 1 are singular. A power of four makes elimination exact, which detects this.
    value = np.full(batch, 4, numbers.dtype) if requires not in ("", "hermitian") else numbers(batch)
    return Fill(value.real.astype(numbers.dtype) if requires == "hermitian" else value, core)


# ---- banded ----------------------------------------------------------------------------------------------------------


def _scale(numbers: Numbers, batch: Shape, requires: str) -> np.ndarray:
    if not requires:
        return numbers(batch)
    values = numbers.real(batch)
    return values if requires == "hermitian" else np.asarray(np.abs(values) + 1, numbers.dtype)


@sampler("Identity")
def _draw_identity(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Identity:
    return Identity(core, _scale(numbers, batch, requires))


@sampler("Diagonal")
def _draw_diagonal(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Diagonal:
    return Diagonal(_scale(numbers, (*batch, min(core)), requires), shape=core)


def banded(offsets: Sequence[int]) -> Sampler:
    """Return the sampler of `Banded` arrays with these offsets, without offsets outside the matrix.

    Examples
    --------
    >>> from structarrays.testing import Numbers, banded
    >>> banded((-1, 5))(Numbers(0, "float64"), (), (3, 3), "").offsets
    (-1,)
    """

    def draw(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Banded | None:
        m, n = core
        if not requires:
            kept = [k for k in offsets if -m < k < n]
            drawn = [numbers((*batch, _length(core, k))) for k in kept]
            return _banded(drawn, kept, core, numbers.dtype, batch)
        if 0 not in offsets:
            return None
        if requires == "invertible":
            kept = [k for k in offsets if -m < k < n]
        else:
            kept = sorted({s for k in offsets for s in (-k, k) if abs(k) < n})
        diagonals = {k: numbers((*batch, _length(core, k))) / (2 * n) for k in kept}
        for k in kept:
            if k <= 0 and requires != "invertible":
                diagonals[k] = diagonals[-k].conj() if k else diagonals[k].real
        if requires != "hermitian":
            diagonals[0] = diagonals[0] + numbers.high + 1
        values = [np.asarray(diagonals[k], numbers.dtype) for k in kept]
        return _banded(values, kept, core, numbers.dtype, batch)

    return draw


def _length(core: Shape, k: int) -> int:
    m, n = core
    return max(0, min(m, n - k) if k >= 0 else min(m + k, n))


def _banded(
    diagonals: Sequence[np.ndarray], offsets: Sequence[int], core: Shape, dtype: DTypeLike, batch: Shape
) -> Banded:
    if offsets:
        return Banded(diagonals, offsets, core)
    return bands([], (), core, dtype=dtype, batch=batch)


SAMPLERS["Banded"] = banded((-2, 0, 1))
SAMPLERS["Banded off the diagonal"] = banded((-1, 2))
SAMPLERS["Banded without offsets"] = banded(())


# ---- with a background -----------------------------------------------------------------------------------------------


def with_background(structure: str) -> Sampler:
    """Return the sampler of arrays of a structure with a stored background.

    Examples
    --------
    >>> from structarrays.testing import Numbers, with_background
    >>> with_background("Diagonal")(Numbers(0, "float64"), (), (3, 3), "").background.shape
    ()
    """

    def draw(numbers: Numbers, batch: Shape, core: Shape, requires: str) -> Array | None:
        x = SAMPLERS[structure](numbers, batch, core, requires)
        if x is None:
            return None
        if requires:
            # A background b adds the positive semidefinite b 11ᵀ, except in the pattern.
            # So b is small compared with the diagonal.
            background = np.full(batch, 0.25 / max(1, core[-1]), numbers.dtype)
        else:
            background = numbers(batch)
        return x.rebuild(x.entries, jnp.asarray(background))

    return draw


for _structure in ("Identity", "Diagonal", "Banded"):
    SAMPLERS[f"{_structure} + background"] = with_background(_structure)
