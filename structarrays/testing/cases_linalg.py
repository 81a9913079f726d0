"""The uses of linear algebra and Fourier transforms for the equivalence tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .case import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO = ("x1", "x2")
DEGENERATE = ("Fill", "Identity", "Identity + background", "Banded without offsets", "Banded off the diagonal")


def _products() -> Iterator[Case]:
    for prefix in ("xp.", "xp.linalg."):
        name = f"{prefix}matmul".removeprefix("xp.")
        for cores in (("mn", "np"), ("mn", "n"), ("m", "mn"), ("n", "n")):
            vectors = "".join(map(str, map(len, cores)))
            batches = {"22": "broadcast", "21": "first", "12": "second", "11": "none"}[vectors]
            yield Case(name, f"{prefix}matmul(x1, x2)", operands=TWO, cores=cores, batches=batches)
        name = f"{prefix}vecdot".removeprefix("xp.")
        for axis in (-1, -2):
            yield Case(name, f"{prefix}vecdot(x1, x2, axis={axis})", operands=TWO, cores=("mn", "mn"))
        yield Case(name, f"{prefix}vecdot(x1, x2, axis=-3)", operands=TWO, cores=("mn", "mn"), batches="some")
        name = f"{prefix}tensordot".removeprefix("xp.")
        for cores, axes in (
            (("mn", "np"), "1"),
            (("mn", "mn"), "2"),
            (("mn", "pm"), "0"),
            (("mn", "mp"), "((0,), (0,))"),
            (("mn", "pn"), "((1,), (1,))"),
            (("mn", "nm"), "((0, 1), (1, 0))"),
        ):
            code = f"{prefix}tensordot(x1, x2, axes={axes})"
            yield Case(name, code, operands=TWO, cores=cores, batches="none")
    yield Case("@", "x1 @ x2", operands=TWO, cores=("mn", "np"))
    yield Case("@", "x1 @= x2", operands=TWO, cores=("mn", "nn"), batches="equal")
    yield Case("linalg.outer", "xp.linalg.outer(x1, x2)", operands=TWO, cores=("m", "n"), batches="none")
    yield Case("linalg.cross", "xp.linalg.cross(x1, x2)", operands=TWO, cores=("m3", "m3"))
    yield Case("linalg.cross", "xp.linalg.cross(x1, x2, axis=-2)", operands=TWO, cores=("3n", "3n"))


def _numbers() -> Iterator[Case]:
    """Yield cases of parts of matrices and norms."""
    for offset in (0, 1, -1, 3):
        yield Case("linalg.diagonal", f"xp.linalg.diagonal(x, offset={offset})", kinds="all")
        yield Case("linalg.trace", f"xp.linalg.trace(x, offset={offset})")
    yield Case("linalg.trace", "xp.linalg.trace(x, dtype=xp.float64)", kinds="real numeric")
    for order in ("", ", ord=1", ", ord=-1", ", ord=float('inf')", ", ord=-float('inf')", ", keepdims=True"):
        yield Case("linalg.matrix_norm", f"xp.linalg.matrix_norm(x{order})", kinds="floating")
    for order in ("2", "-2", "'nuc'"):
        yield Case(
            "linalg.matrix_norm",
            f"xp.linalg.matrix_norm(x, ord={order})",
            kinds="floating",
            degenerate=(*DEGENERATE, "Diagonal", "Diagonal + background"),
        )
    yield Case("linalg.svdvals", "xp.linalg.svdvals(x)", kinds="floating", degenerate=DEGENERATE)
    rank: dict[str, Any] = {"kinds": "floating", "smooth": False}
    yield Case("linalg.matrix_rank", "xp.linalg.matrix_rank(x)", **rank)
    yield Case("linalg.matrix_rank", "xp.linalg.matrix_rank(x, rtol=0.5)", **rank)


def _has_clear_rank(x: np.ndarray) -> bool:
    """Return whether all small singular values are zero up to rounding."""
    s = np.linalg.svd(x, compute_uv=False) if x.size else np.ones(1)
    return not np.any((s > 1e-6 * s[..., :1]) & (s < 0.02 * s[..., :1]))


def _solvers() -> Iterator[Case]:
    solve: dict[str, Any] = {"operands": TWO, "kinds": "floating", "requires": ("invertible", ""), "condition": True}
    yield Case("linalg.solve", "xp.linalg.solve(x1, x2)", cores=("nn", "nk"), **solve)
    yield Case("linalg.solve", "xp.linalg.solve(x1, x2)", cores=("nn", "nn"), **solve)
    yield Case("linalg.solve", "xp.linalg.solve(x1, x2)", cores=("nn", "n"), batches="first", **solve)
    code = "xp.linalg.solve(x1, x2)"
    yield Case("linalg.solve", code, cores=("nn", "nk"), **solve | {"requires": ("positive definite", "")})
    one: dict[str, Any] = {"cores": ("nn",), "kinds": "floating", "requires": ("invertible",), "condition": True}
    yield Case("linalg.inv", "xp.linalg.inv(x)", **one)
    yield Case("linalg.det", "xp.linalg.det(x)", **one | {"requires": ()}, smooth=False)
    yield Case("linalg.det", "xp.linalg.det(x)", **one, degenerate=("Fill",))
    yield Case("linalg.slogdet", "xp.linalg.slogdet(x)", **one, degenerate=("Fill",))
    for n in (0, 1, 2, 3, 5):
        yield Case("linalg.matrix_power", f"xp.linalg.matrix_power(x, {n})", cores=("nn",), kinds="floating")
    for n in (-1, -2):
        yield Case("linalg.matrix_power", f"xp.linalg.matrix_power(x, {n})", **one)
    definite: dict[str, Any] = one | {"requires": ("positive definite",)}
    yield Case("linalg.cholesky", "xp.linalg.cholesky(x)", **definite)
    yield Case("linalg.cholesky", "xp.linalg.cholesky(x, upper=True)", **definite)
    indefinite = "xp.linalg.cholesky(x - 1000 * xp.eye(x.shape[-1], dtype=x.dtype))"
    yield Case("linalg.cholesky", indefinite, **definite, raises=True, batches="positive")
    yield Case("linalg.inv", "xp.linalg.inv(0 * x)", **one, raises=True, batches="positive")
    singular: dict[str, Any] = solve | {"raises": True, "batches": "positive"}
    yield Case("linalg.solve", "xp.linalg.solve(0 * x1, x2)", cores=("nn", "nk"), **singular)
    pinv: dict[str, Any] = {"kinds": "floating", "degenerate": DEGENERATE, "given": _has_clear_rank}
    yield Case("linalg.pinv", "xp.linalg.pinv(x, rtol=1e-5)", **pinv)
    yield Case("linalg.pinv", "xp.linalg.pinv(x)", **one)


def _spectra() -> Iterator[Case]:
    conjugate = "xp.conj(xp.matrix_transpose({}))".format
    hermitian: dict[str, Any] = {"cores": ("nn",), "kinds": "floating", "requires": ("hermitian",)}
    yield Case(
        "linalg.eigh",
        "xp.linalg.eigh(x)",
        invariants="(r.eigenvalues, (r.eigenvectors * xp.astype(r.eigenvalues, x.dtype)[..., None, :]) @ "
        f"{conjugate('r.eigenvectors')}, {conjugate('r.eigenvectors')} @ r.eigenvectors)",
        degenerate=DEGENERATE,
        **hermitian,
    )
    yield Case("linalg.eigvalsh", "xp.linalg.eigvalsh(x)", degenerate=DEGENERATE, **hermitian)
    # Sums of powers do not depend on the order of the eigenvalues.
    power_sums = "tuple(xp.sum(xp.astype({0}, xp.complex128)**k, axis=-1) for k in (1, 2, 3, 4))".format
    general: dict[str, Any] = {"cores": ("nn",), "kinds": "floating"}
    yield Case(
        "linalg.eigvals",
        "xp.linalg.eigvals(x)",
        invariants=power_sums("r"),
        oracle=lambda x: _complex(np.linalg.eigvals(x)),
        smooth=False,
        **general,
    )
    yield Case(
        "linalg.eig",
        "xp.linalg.eig(x)",
        invariants=f"({power_sums('r.eigenvalues')}, xp.astype(x, r.eigenvectors.dtype) @ r.eigenvectors"
        " - r.eigenvectors * r.eigenvalues[..., None, :], xp.linalg.vector_norm(r.eigenvectors, axis=-2))",
        oracle=_eig,
        smooth=False,
        **general | {"requires": ("invertible",)},
    )
    for arguments in ("", ", full_matrices=False"):
        yield Case(
            "linalg.svd",
            f"xp.linalg.svd(x{arguments})",
            invariants="(r.S, (r.U[..., :, :r.S.shape[-1]] * xp.astype(r.S, x.dtype)[..., None, :]) @ r.Vh[..., :r.S.shape[-1], :], "
            f"{conjugate('r.U')} @ r.U, r.Vh @ {conjugate('r.Vh')})",
            degenerate=DEGENERATE,
            smooth=False,
            kinds="floating",
        )
    for arguments in ("", ", mode='complete'"):
        yield Case(
            "linalg.qr",
            f"xp.linalg.qr(x{arguments})",
            invariants=f"(r.Q @ r.R, {conjugate('r.Q')} @ r.Q, xp.tril(r.R, k=-1), xp.abs(r.R[..., :1, :]))",
            kinds="floating",
            smooth=False,
        )


def _complex(values: np.ndarray) -> np.ndarray:
    return values if values.dtype.kind == "c" else values.astype(np.result_type(values.dtype, np.complex64))


def _eig(x: np.ndarray) -> Any:
    values, vectors = np.linalg.eig(x)
    return type(np.linalg.eig(np.eye(1)))(_complex(values), _complex(vectors))


def _fourier() -> Iterator[Case]:
    for name in ("fft", "ifft"):
        for arguments in ("", ", axis=0", ", n=3", ", n=7, axis=-2", ", norm='ortho'"):
            yield Case(f"fft.{name}", f"xp.fft.{name}(x{arguments})", kinds="complex")
    yield Case("fft.rfft", "xp.fft.rfft(x)", kinds="real floating")
    yield Case("fft.rfft", "xp.fft.rfft(x, axis=0, norm='forward')", kinds="real floating")
    yield Case("fft.irfft", "xp.fft.irfft(x)", kinds="complex")
    yield Case("fft.irfft", "xp.fft.irfft(x, n=5, axis=0)", kinds="complex", batches="positive")
    yield Case("fft.hfft", "xp.fft.hfft(x)", kinds="complex")
    yield Case("fft.ihfft", "xp.fft.ihfft(x)", kinds="real floating")
    for name, kinds in (("fftn", "complex"), ("ifftn", "complex"), ("rfftn", "real floating"), ("irfftn", "complex")):
        yield Case(f"fft.{name}", f"xp.fft.{name}(x)", kinds=kinds)
        yield Case(f"fft.{name}", f"xp.fft.{name}(x, s=(3, 4), axes=(-2, -1))", kinds=kinds)
    for name in ("fftshift", "ifftshift"):
        yield Case(f"fft.{name}", f"xp.fft.{name}(x)", kinds="floating", elementwise=True)
        yield Case(f"fft.{name}", f"xp.fft.{name}(x, axes=0)", kinds="floating", elementwise=True)


def _bad() -> Iterator[Case]:
    two: dict[str, Any] = {"operands": TWO, "kinds": "floating", "raises": True}
    yield Case("matmul", "xp.matmul(x1, x2)", cores=("mn", "77"), **two)
    wide: dict[str, Any] = {**two, "given": lambda x1, x2: x1.shape[-1] > 1}
    yield Case("matmul", "x1 @ x2[..., 0, 0, None, None, None]", cores=("mn", "nn"), **wide, batches="none")
    yield Case("vecdot", "xp.vecdot(x1, x2)", cores=("mn", "m7"), **two)
    yield Case("linalg.solve", "xp.linalg.solve(x1, x2)", cores=("nn", "7k"), **two)
    for name in ("inv", "det", "cholesky", "eigh", "eigvals"):
        code = f"xp.linalg.{name}(x[..., :2, :3])"
        yield Case(f"linalg.{name}", code, cores=("44",), kinds="floating", raises=True)


CASES = (*_products(), *_numbers(), *_solvers(), *_spectra(), *_fourier(), *_bad())
"""Products, parts, solvers, spectra, Fourier transforms."""
