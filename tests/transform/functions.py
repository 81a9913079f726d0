"""Some three hundred functions and idioms of JAX, each of a structured matrix `A` and a vector `x`.

A line is a Python expression with `jnp`, `jax`, `lax`, `nn`, `special`, `linalg` (`jax.scipy.linalg`), `A (m, n)` and `x (n,)`. What
comes out must be unique: of a factorisation it is the product of the factors, or their invariants. The sections say what is asked of `A`.
"""

import jax
import jax.numpy as jnp
from jax import lax

ANY = """
jnp.abs(A)
jnp.arccos(A / 4)
jnp.arccosh(A + 4)
jnp.angle(A)
jnp.arcsin(A / 4)
jnp.arcsinh(A)
jnp.arctan(A)
jnp.arctanh(A / 4)
jnp.cbrt(A)
jnp.ceil(A)
jnp.conj(A)
jnp.cos(A)
jnp.cosh(A)
jnp.deg2rad(A)
jnp.degrees(A)
jnp.exp(A)
jnp.exp2(A)
jnp.expm1(A)
jnp.fabs(A)
jnp.trunc(A)
jnp.floor(A)
jnp.i0(A)
jnp.imag(A)
jnp.isfinite(A)
jnp.isinf(A)
jnp.isnan(A)
jnp.isneginf(A)
jnp.isposinf(A)
jnp.isreal(A)
jnp.iscomplex(A)
jnp.log(A + 4)
jnp.log10(A + 4)
jnp.log1p(A / 4)
jnp.log2(A + 4)
jnp.logical_not(A)
jnp.nan_to_num(A)
jnp.negative(A)
jnp.positive(A)
jnp.rad2deg(A)
jnp.radians(A)
jnp.real(A)
jnp.reciprocal(A + 4)
jnp.rint(A)
jnp.round(A)
jnp.round(A, 1)
jnp.sign(A)
jnp.signbit(A)
jnp.sin(A)
jnp.sinc(A + 4)
jnp.sinh(A)
jnp.sqrt(A + 4)
jnp.square(A)
jnp.tan(A / 4)
jnp.tanh(A)
jnp.modf(A)
jnp.frexp(A)
jnp.astype(A, jnp.float32)
A.astype(jnp.complex128)
jnp.asarray(A)
jnp.array(A)
jnp.copy(A)
-A
+A
abs(A)
A + 1
1 - A
A * 2
2 * A
A / 3
1 / (A + 4)
A**2
A**3
A**0
(A + 4) ** 0.5
(A + 4) ** 1.5
2.0**A
A // 0.7
A % 0.7
divmod(A, 0.7)
jnp.add(A, A)
jnp.subtract(A, 2 * A)
jnp.multiply(A, A)
jnp.divide(A, A * A + 1)
jnp.floor_divide(A, 0.7)
jnp.remainder(A, 0.7)
jnp.fmod(A, 0.7)
jnp.power(A + 4, 2.5)
jnp.power(A + 4, A)
jnp.float_power(A + 4, 2)
jnp.maximum(A, 0.5)
jnp.maximum(A, -A)
jnp.minimum(A, 0.5)
jnp.minimum(A, x)
jnp.fmax(A, 0.5)
jnp.fmin(A, 0.5)
jnp.hypot(A, 1.0)
jnp.arctan2(A, 2.0)
jnp.copysign(1.0, A)
jnp.nextafter(A, 9.0)
jnp.logaddexp(A, 0.5)
jnp.logaddexp2(A, A)
jnp.heaviside(A, 0.5)
jnp.ldexp(A, 2)
jnp.equal(A, 0)
jnp.not_equal(A, 0)
jnp.greater(A, 0.3)
jnp.greater_equal(A, 0)
jnp.less(A, x)
jnp.less_equal(A, A * A)
A > 0
(A > 0) & (A < 1)
(A > 0) | (A < -1)
(A > 0) ^ (A < 1)
~(A > 0)
jnp.logical_and(A > 0, A < 1)
jnp.logical_or(A > 0, A < -1)
jnp.logical_xor(A > 0, A < 1)
jnp.isclose(A, 0)
jnp.allclose(A, 0)
jnp.array_equal(A, A)
jnp.clip(A, -0.5, 0.5)
jnp.clip(A, 0.1)
jnp.clip(A, None, 0.5)
jnp.where(A > 0, A, 0.0)
jnp.where(A > 0, A, -A)
jnp.where(A > 0, 1.0, A)
jnp.where(x > 0, A, 0.0)
jnp.select([A > 1, A > 0], [A, 2 * A], 0.0)
jnp.piecewise(A, [A > 0], [lambda v: v * v, lambda v: -v])
jnp.polyval(jnp.array([1.0, -2.0, 0.5]), A)
jnp.interp(A, jnp.array([-2.0, 0.0, 2.0]), jnp.array([1.0, 0.0, 3.0]))
A + x
A - x
A * x
A / (x * x + 1)
x * A
A + x[None, :]
A * (x * x)[None, :]
A + A.sum(axis=1, keepdims=True)
A - A.mean(axis=0)
(A - A.mean(axis=0)) / (A.std(axis=0) + 1)
(A - A.mean(axis=0)) @ x
jnp.zeros_like(A)
jnp.ones_like(A)
jnp.full_like(A, 2.0)
A * jnp.ones_like(A)
A + jnp.zeros(A.shape)
lax.erf_inv(A / 4)
lax.rsqrt(A + 4)
lax.integer_pow(A, 5)
lax.clamp(-0.5, A, 0.5)
lax.select(A > 0, A, -A)
lax.reduce_precision(A, 8, 10)
lax.stop_gradient(A) + A
lax.neg(A)
lax.is_finite(A)
lax.convert_element_type(A, jnp.float32)
lax.bitcast_convert_type(A, jnp.int64)
lax.optimization_barrier(A)
lax.full_like(A, 3.0) * A
special.erf(A)
special.erfc(A)
special.expit(A)
special.logit(A / 8 + 0.5)
special.gammaln(A + 4)
special.digamma(A + 4)
special.i0e(A)
special.i1e(A)
special.ndtr(A)
special.log_ndtr(A)
special.entr(A + 4)
special.xlogy(A, 2.0)
special.xlog1py(A, 2.0)
special.logsumexp(A)
special.logsumexp(A, axis=1)
special.softmax(A, axis=1)
special.rel_entr(A + 4, 2.0)
special.betaln(A + 4, 2.0)
special.polygamma(1, A + 4)
special.gammainc(2.0, A + 4)
nn.relu(A)
nn.relu6(A)
nn.sigmoid(A)
nn.softplus(A)
nn.silu(A)
nn.gelu(A)
nn.gelu(A, approximate=False)
nn.elu(A)
nn.leaky_relu(A)
nn.celu(A)
nn.selu(A)
nn.hard_tanh(A)
nn.hard_sigmoid(A)
nn.hard_silu(A)
nn.log_sigmoid(A)
nn.soft_sign(A)
nn.squareplus(A)
nn.mish(A)
nn.softmax(A)
nn.log_softmax(A)
nn.standardize(A)
nn.logsumexp(A, axis=0)
jnp.sum(A)
jnp.sum(A, axis=0)
jnp.sum(A, axis=1, keepdims=True)
jnp.sum(A, where=A > 0)
jnp.prod(A + 1, axis=0)
jnp.mean(A)
jnp.mean(A, axis=1)
jnp.var(A)
jnp.var(A, axis=0)
jnp.std(A + x, axis=1, ddof=1)
jnp.max(A)
jnp.max(A, axis=1)
jnp.min(A, axis=0)
jnp.amax(A, axis=0)
jnp.ptp(A, axis=0)
jnp.all(A > -1)
jnp.any(A > 1, axis=0)
jnp.argmax(A, axis=1)
jnp.argmin(A)
jnp.count_nonzero(A, axis=0)
jnp.average(A, axis=0)
jnp.average(A, axis=1, weights=x * x)
jnp.median(A, axis=0)
jnp.percentile(A, 30, axis=0)
jnp.quantile(A, 0.3)
jnp.nansum(A, axis=0)
jnp.nanmean(A, axis=1)
jnp.nanmax(A)
jnp.nanvar(A)
jnp.cumsum(A, axis=0)
jnp.cumsum(A)
jnp.cumprod(A, axis=1)
jnp.cumulative_sum(A, axis=1)
lax.cummax(A, axis=0)
lax.cummin(A, axis=1)
lax.cumlogsumexp(A, axis=0)
lax.cumsum(A, axis=0, reverse=True)
jnp.diff(A, axis=0)
jnp.ediff1d(A)
jnp.gradient(A, axis=0)
jnp.trapezoid(A, axis=0)
jnp.convolve(A[0], x)
jnp.sort(A, axis=0)
jnp.sort(A)
jnp.sort(A, descending=True)
jnp.partition(A, 1, axis=0)
lax.top_k(A, 2)[0]
jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), A)
jnp.digitize(A, jnp.array([-1.0, 0.0, 1.0]))
jnp.histogram(A, bins=3, range=(-2, 2))[0]
jnp.bincount(jnp.ravel(A > 0).astype(int), length=2)
A.T
A.mT
jnp.transpose(A)
jnp.matrix_transpose(A)
jnp.swapaxes(A, 0, 1)
jnp.moveaxis(A, 0, 1)
jnp.permute_dims(A, (1, 0))
jnp.reshape(A, (-1,))
A.reshape(A.shape[1], A.shape[0])
jnp.ravel(A)
A.flatten()
jnp.expand_dims(A, 0)
A[:, :, None]
A[None]
jnp.squeeze(A[None], 0)
jnp.broadcast_to(A, (2, *A.shape))
jnp.atleast_3d(A)
jnp.concatenate([A, A])
jnp.concatenate([A, 2 * A], axis=1)
jnp.concat([A, x[None, :]])
jnp.stack([A, A])
jnp.stack([A, A], axis=-1)
jnp.vstack([A, x])
jnp.hstack([A, A])
jnp.dstack([A, A])
jnp.column_stack([A, A])
jnp.append(A, A, axis=0)
jnp.split(A, [1, 2])
jnp.split(A, [2], axis=1)
jnp.array_split(A, 2)
jnp.vsplit(A, [1])
jnp.hsplit(A, [1])
jnp.unstack(A)
jnp.tile(A, (2, 1))
jnp.tile(A, 2)
jnp.repeat(A, 2, axis=0)
jnp.flip(A)
jnp.flip(A, axis=0)
jnp.fliplr(A)
jnp.flipud(A)
jnp.roll(A, 1)
jnp.roll(A, 1, axis=0)
jnp.rot90(A)
jnp.pad(A, 1)
jnp.pad(A, ((1, 0), (0, 2)), constant_values=3.0)
jnp.pad(A, 1, mode="edge")
jnp.delete(A, 1, axis=0)
jnp.insert(A, 1, x, axis=0)
jnp.resize(A, (2, 3))
jnp.block([[A, A], [A, A]])
A[0]
A[-1]
A[:, 1]
A[1, 2]
A[::2]
A[1:3]
A[1:, ::-1]
A[..., 0]
A[jnp.array([0, 2, 1])]
A[:, jnp.array([0, -1])]
A[jnp.array([0, 1]), jnp.array([1, 2])]
A[jnp.array([[0, 1], [2, 0]])]
A[jnp.argmax(x) % 3]
A[jnp.argmax(x) % 3, 1]
lax.dynamic_slice(A, (1, jnp.argmax(x) % 2), (2, 2))
lax.dynamic_index_in_dim(A, 1, axis=1, keepdims=False)
lax.slice_in_dim(A, 0, 3, stride=2)
jnp.take(A, jnp.array([0, 2]), axis=0)
jnp.take(A, jnp.array([0, 2]), axis=1, mode="clip")
jnp.take(A, jnp.array([0, 7]))
jnp.take_along_axis(A, jnp.array([[0], [1], [2], [0]]), axis=1)
jnp.diagonal(A)
jnp.diagonal(A, 1)
jnp.diagonal(A, -1)
jnp.diag(A)
jnp.diag(A[0]) @ x
jnp.diagflat(A[0])
jnp.tril(A)
jnp.triu(A, 1)
jnp.tril(A, -1) + jnp.triu(A)
jnp.trace(A)
jnp.trace(A, 1)
A.at[0].set(x)
A.at[1, 2].set(7.0)
A.at[1, 2].add(7.0)
A.at[:, 0].multiply(2.0)
A.at[0, 0].min(-9.0)
A.at[jnp.array([0, 1]), jnp.array([0, 1])].set(1.0)
jnp.fill_diagonal(A, 1.0, inplace=False)
lax.dynamic_update_slice(A, x[None, :2], (1, 0))
A @ x
A @ A.T
A.T @ A
A.T @ (A @ x)
x @ A.T
x @ (A.T @ A)
A @ jnp.stack([x, -x], axis=1)
jnp.stack([x, -x]) @ A.T
jnp.dot(A, x)
jnp.dot(A, A.T)
jnp.matmul(A, x[:, None])
jnp.vdot(A, A)
jnp.inner(A, A)
jnp.outer(x, A[0])
jnp.tensordot(A, A)
jnp.tensordot(A, A, axes=((0,), (0,)))
jnp.tensordot(A, x, axes=1)
jnp.vecdot(A, x)
jnp.matvec(A, x)
jnp.einsum("ij,j->i", A, x)
jnp.einsum("ij,kj->ik", A, A)
jnp.einsum("ij,ij->", A, A)
jnp.einsum("ij->ji", A)
jnp.einsum("ij->i", A)
jnp.einsum("ij,j->ij", A, x)
jnp.einsum("bj,ij->bi", jnp.stack([x, -x, 2 * x]), A)
jnp.kron(A, A)
jnp.cov(A)
jnp.linalg.norm(A)
jnp.linalg.norm(A, ord=1)
jnp.linalg.norm(A, ord=jnp.inf)
jnp.linalg.norm(A, ord=2)
jnp.linalg.norm(A, ord="nuc")
jnp.linalg.norm(A, axis=0)
jnp.linalg.norm(A + 4, ord=3, axis=1)
jnp.linalg.vector_norm(A)
jnp.linalg.matrix_norm(A)
jnp.linalg.svdvals(A)
jnp.linalg.svd(A, compute_uv=False)
jnp.linalg.matrix_rank(A)
jnp.linalg.pinv(A) @ A
jnp.linalg.multi_dot([A, A.T, A])
jnp.fft.fft(A)
jnp.fft.ifft(A, axis=0)
jnp.fft.rfft(A)
jnp.fft.fft2(A)
jnp.fft.ifft2(A)
jnp.fft.fftshift(A)
jnp.fft.ifftshift(A, axes=0)
jnp.fft.fftn(A)
jnp.fft.hfft(A)
jax.jit(lambda a: jnp.sin(a) @ x)(A)
jax.checkpoint(lambda a: jnp.sin(a) @ x)(A)
jax.vmap(lambda row: row @ x)(A)
jax.vmap(lambda s: s * A)(x)
jax.vmap(lambda v: A @ v)(jnp.stack([x, -x]))
jax.grad(lambda v: jnp.sum(jnp.sin(A @ v)))(x)
jax.grad(lambda a: jnp.sum(jnp.sin(a @ x)))(A)
jax.jvp(lambda v: A @ v, (x,), (x,))[1]
jax.jvp(lambda a: jnp.sin(a) @ x, (A,), (A,))[1]
jax.jacfwd(lambda v: A @ v)(x)
jax.jacrev(lambda v: A @ v)(x)
jax.linearize(lambda v: jnp.sin(A @ v), x)[1](x)
jax.vjp(lambda v: A @ v, x)[1](A @ x)[0]
lax.cond(x[0] > 0, lambda a: 2 * a, lambda a: a * a, A)
lax.cond(x[0] > 9, lambda a: a @ x, lambda a: (a + 1) @ x, A)
lax.switch(1, [lambda a: a, lambda a: jnp.sin(a), lambda a: a + 1.0], A)
lax.fori_loop(0, 3, lambda i, v: v + (A.T @ (A @ v)) / 9, x)
lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) + i, A)
lax.scan(lambda c, _: (jnp.sin(c), c @ x), A, None, length=3)
lax.scan(lambda c, row: (c + row.sum(), row * 2), 0.0, A)
lax.scan(lambda c, s: (c + s * A, c.sum()), jnp.zeros(A.shape), x)
lax.map(lambda row: row @ x, A)
lax.associative_scan(jnp.add, A)
lax.reduce(A, 0.0, lax.add, (0,))
lax.platform_dependent(A, cpu=lambda a: a * 2, default=lambda a: a * 2)
"""

SQUARE = """
A @ A
A @ A - A
jnp.linalg.matrix_power(A, 3)
jnp.linalg.matrix_power(A, 0)
jnp.eye(A.shape[0]) + A
jnp.eye(A.shape[0]) @ A
A @ jnp.eye(A.shape[0]) * 2
A + A.T
(A + A.T) / 2 - A
A * A.T
jnp.einsum("ij,jk->ik", A, A)
jnp.einsum("i,ij,j->", x, A, x)
jnp.einsum("ij,ji->", A, A)
jnp.einsum("ii->i", A)
jnp.einsum("ii", A)
x @ A @ x
linalg.expm(A / 4)
jnp.tri(A.shape[0]) * A
jnp.identity(A.shape[0]) - A
jax.hessian(lambda v: v @ A @ v)(x)
lax.while_loop(lambda s: s[1] < 3, lambda s: (A @ s[0] / 9, s[1] + 1), (x, 0))[0]
lax.while_loop(lambda s: s[1] < 3, lambda s: (A @ s[0] / 9, s[1] + 1), (A, 0))[0]
linalg.block_diag(A, A)
jnp.linalg.eigvals(A).sum()
"""

INVERTIBLE = """
jnp.linalg.inv(A)
jnp.linalg.solve(A, x)
jnp.linalg.solve(A, jnp.stack([x, -x], axis=1))
jnp.linalg.solve(A.T, x)
jnp.linalg.solve(A, A)
jnp.linalg.det(A)
jnp.linalg.slogdet(A)
jnp.linalg.matrix_power(A, -2)
jnp.linalg.cond(A)
jnp.linalg.lstsq(A, x)[0]
jnp.linalg.qr(A)[0] @ jnp.linalg.qr(A)[1]
jnp.linalg.tensorsolve(A, x)
linalg.solve(A, x)
linalg.inv(A)
linalg.det(A)
linalg.lu_solve(linalg.lu_factor(A), x)
linalg.lu(A, permute_l=True)[0] @ linalg.lu(A)[2]
linalg.solve_triangular(A, x)
linalg.solve_triangular(A, x, lower=True)
linalg.solve_triangular(A, x, trans=1)
lax.custom_linear_solve(lambda v: A @ v, x, lambda _, b: jnp.linalg.solve(A, b), lambda _, b: jnp.linalg.solve(A.T, b))
jax.grad(lambda v: jnp.sum(jnp.linalg.solve(A, v)))(x)
jax.grad(lambda a: jnp.sum(jnp.linalg.solve(a, x)))(A)
jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(A)
"""

POSITIVE_DEFINITE = """
jnp.linalg.cholesky(A)
jnp.linalg.cholesky(A, upper=True)
jnp.linalg.cholesky(A) @ x
jnp.linalg.eigvalsh(A).sum()
(jnp.linalg.eigh(A)[1] * jnp.linalg.eigh(A)[0]) @ jnp.linalg.eigh(A)[1].T
linalg.cho_solve(linalg.cho_factor((A + A.T.conj()) / 2), x)
linalg.cho_solve((jnp.linalg.cholesky(A), True), x)
linalg.solve((A + A.T.conj()) / 2, x, assume_a="pos")
linalg.cholesky((A + A.T.conj()) / 2, lower=True)
linalg.solve_triangular(jnp.linalg.cholesky(A), x, lower=True)
linalg.sqrtm(A)
jax.scipy.sparse.linalg.cg(lambda v: A @ v, x)[0]
jax.scipy.stats.multivariate_normal.logpdf(x, jnp.zeros_like(x), A)
-0.5 * x @ jnp.linalg.solve(A, x) - 0.5 * jnp.linalg.slogdet(A)[1]
"""

SECTIONS = {"": ANY, "square": SQUARE, "invertible": INVERTIBLE, "positive definite": POSITIVE_DEFINITE}
FUNCTIONS = {
    line: section for section, text in SECTIONS.items() for line in (line.strip() for line in text.splitlines()) if line
}
"""The expressions, each with what is asked of `A`."""

SCOPE = {
    "jax": jax,
    "jnp": jnp,
    "lax": lax,
    "nn": jax.nn,
    "special": jax.scipy.special,
    "linalg": jax.scipy.linalg,
}


def function(expression: str):
    """The function of `A` and `x` that an expression is."""
    return eval(f"lambda A, x: ({expression})", dict(SCOPE))
