"""Hashes of the content of arrays, kept for arrays of JAX that are known by identity.

Host calls see buffers, not arrays. A buffer is the memory of a known array if it has its address, and if the array still
exists.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from typing import Any

import jax
import numpy as np


def digest_of(array: np.ndarray, may_change: bool) -> bytes:
    """Return the hash of an array, from memory if it is the buffer of a known array of JAX."""
    known = _KNOWN.get(array.ctypes.data)
    if known is None or not known.has(array):
        return _content(array)
    mark = _mark(array) if may_change else None
    if known.digest is None or known.mark != mark:
        known.digest, known.mark = _content(array), mark
    return known.digest


def _content(array: np.ndarray) -> bytes:
    contiguous: Any = np.ascontiguousarray(array)  # NumPy's types declare the buffer protocol only for later versions
    return hashlib.blake2b(contiguous, digest_size=32).digest()


class _Known:
    """The hash of the content of an array of JAX, valid as long as the array exists.

    While an array exists and is not deleted, no other content can be at its address: JAX does not change its memory,
    and donation deletes it. Foreign code may still write to entries in memory that it shares with JAX (`from_dlpack`),
    so `mark`, a fast checksum of the entries, is compared, too. Coordinates are sorted copies.
    """

    __slots__ = ("digest", "mark", "nbytes", "ref")

    def __init__(self, array: jax.Array, address: int) -> None:
        self.ref = weakref.ref(array, lambda ref: _forget(address, ref))
        self.nbytes = array.nbytes
        self.digest: bytes | None = None
        self.mark: tuple[int, int] | None = None

    def has(self, buffer: np.ndarray) -> bool:
        """Return whether a buffer at the address of the array is the whole array."""
        array = self.ref()
        whole = buffer.nbytes == self.nbytes and buffer.flags.c_contiguous
        return whole and array is not None and not array.is_deleted()


_KNOWN: dict[int, _Known] = {}
"""Arrays of JAX by the addresses of their buffers."""


def remember(*arrays: jax.Array) -> None:
    """Let the cache recognise these arrays by their identity, so that it hashes their content once."""
    for array in arrays:
        if isinstance(array, jax.core.Tracer) or not isinstance(array, jax.Array):
            continue
        if not array.nbytes or array.nbytes % 8:
            continue
        if {device.platform for device in array.devices()} != {"cpu"} or len(array.devices()) > 1:
            continue
        address = array.unsafe_buffer_pointer()
        known = _KNOWN.get(address)
        if known is None or known.ref() is not array:
            _KNOWN[address] = _Known(array, address)


def _forget(address: int, ref: weakref.ref[jax.Array]) -> None:
    known = _KNOWN.get(address)
    if known is not None and known.ref is ref:
        del _KNOWN[address]


_BLOCK = 1 << 16
"""The number of elements that the checksum of an array processes at a time."""


def _mark(array: np.ndarray) -> tuple[int, int]:
    """Return a checksum of an array: sums of its words, and of the high halves of its words, with random odd weights.

    A change of the low bits of words changes the first sum. A change of the high bits, such as signs, may leave it, since the sum
    is modulo ``2**64``; it changes the second sum.
    """
    words = array.reshape(-1).view(np.uint64)
    whole, high, weights = 0, 0, _weights()
    for start in range(0, len(words), _BLOCK):
        part = words[start : start + _BLOCK]
        whole = (whole * 3 + int(np.einsum("i,i", part, weights[: len(part)]))) % (1 << 64)
        high = (high * 3 + int(np.einsum("i,i", part >> np.uint64(32), weights[: len(part)]))) % (1 << 64)
    return whole, high


@functools.cache
def _weights() -> np.ndarray:
    rng = np.random.default_rng()
    odd: np.ndarray = rng.integers(0, 1 << 63, _BLOCK, np.uint64) * np.uint64(2) + np.uint64(1)
    return odd
