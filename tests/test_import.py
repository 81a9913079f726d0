"""The import of the library: modules that it leaves for the first use, and Python's garbage collection."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import structarrays as sa
from structarrays._core.dispatch import late

ROOT = Path(sa.__file__).parent
TREE = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))


def run(code):
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.split()


def imported_for_type_checkers():
    """By name: the module from which the file imports it for type checkers alone."""
    (block,) = (n for n in TREE.body if isinstance(n, ast.If) and ast.unparse(n.test) == "_typing.TYPE_CHECKING")
    return {a.name: n.module or a.name for n in block.body for a in n.names}


def test_type_checkers_and_python_import_the_same():
    assert sa._ON_FIRST_USE == imported_for_type_checkers() | {"testing": "testing"}


def test_modules_that_most_programs_do_not_need_are_imported_on_first_use():
    names = [*sa._ON_FIRST_USE.values(), *(f"interop.{name}" for name in late.ON_FIRST_USE.values())]
    left = {f"structarrays.{name}" for name in names}
    left.remove("structarrays.interop.exports")  # it registers static parts
    imported = run("import sys, structarrays; print(*sys.modules)")
    assert set(left).isdisjoint(imported)
    assert "structarrays._core.dispatch.late" in imported


def test_names_imported_on_first_use():
    """Each name is used first, as an import or as an attribute, and is then an attribute of the namespace."""
    code = """
import structarrays as sa
for name in sorted(sa._ON_FIRST_USE):
    vars(sa).pop(name, None)
    exec(f"from structarrays import {name} as first")
    assert first is vars(sa)[name], name
    vars(sa).pop(name)
    assert getattr(sa, name) is first and vars(sa)[name] is first, name
"""
    assert run(code) == []
    assert set(sa._ON_FIRST_USE) - set(dir(sa)) == {"testing"}


def test_star_import():
    assert run("from structarrays import *; print(save.__name__, plot.__name__, structured.__name__)") == [
        "save",
        "structarrays.plot",
        "structured",
    ]


def test_first_uses_in_a_compiled_program():
    """NumPy's protocols, text and jacobians are imported while JAX traces."""
    code = """
import jax, numpy as np, structarrays as sa
def f(v):
    y = sa.Diagonal(v)
    repr(y), str(y), y._repr_html_()
    return np.multiply(y, 2.0), np.diagonal(y), sa.jacobian(lambda u: 3.0 * u)(v), sa.structured(lambda a: a + a)(y)
first, second = jax.jit(f)(np.array([1.0, 2.0])), jax.jit(f)(np.array([2.0, 3.0]))
print(*first[0].diagonal().tolist(), *second[0].diagonal().tolist(), *second[1].tolist(), type(second[2]).__name__)
"""
    assert run(code) == ["2.0", "4.0", "4.0", "6.0", "2.0", "3.0", "Diagonal"]


def test_first_uses_compile_nothing_again():
    """Modules of JAX that the library imports in the middle of a program must not change the key of its compiled functions."""
    code = """
import jax, jax.numpy as jnp, numpy as np, structarrays as sa
N = 600  # enough for host calls
ones = np.ones(N)
SPARSE = sa.Sparse(4 * ones, (np.arange(N), np.arange(N)), (N, N))
MESH = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))
USES = {
    "band": lambda x: sa.linalg.solve(sa.Banded([4 * x, x[1:], x[1:], x[2:]], (0, 1, -1, 2), (N, N)), x),
    "definite band": lambda x: sa.linalg.cholesky(sa.assume(sa.tridiagonal(x[1:], 4 * x, x[1:]), "positive_definite")),
    "ring": lambda x: sa.linalg.solve(sa.PeriodicBanded([4 * x, x, x], (0, 1, -1)), x),
    "toeplitz": lambda x: sa.linalg.solve(sa.Toeplitz(x.at[0].set(60.0)), x),
    "sparse": lambda x: sa.linalg.solve(SPARSE, x),
    "blocks": lambda x: sa.linalg.solve(sa.BlockDiagonal(4 * jnp.eye(4) + x[:40].reshape(10, 4, 1)), x[:40]),
    "kronecker": lambda x: sa.linalg.logdet(sa.Kronecker(jnp.diag(x[:4]), jnp.diag(x[:5])) + sa.eye(20)),
    "low rank": lambda x: sa.linalg.solve(sa.Diagonal(4 * x) + sa.LowRank(x[:, None], x[:, None]), x),
    "ldl": lambda x: sa.linalg.ldl(jnp.diag(x[:3])),
    "root": lambda x: sa.linalg.sqrtm(jnp.diag(x[:3])),
    "spectrum": lambda x: sa.linalg.eigvalsh(sa.tridiagonal(x[1:], 4 * x, x[1:])),
    "gradient": lambda x: sa.grad(lambda d: sa.linalg.logdet(sa.tridiagonal(d[1:], 4 * d, d[1:])))(x),
    "interpreter": lambda x: sa.structured(jnp.sin)(sa.Diagonal(x)),
    "jacobian": lambda x: sa.jacobian(lambda y: y * y)(x),
    "bcoo": lambda x: sa.interop.jax_sparse.to_sparse(SPARSE) @ x,
    "mesh": lambda x: jax.device_put(sa.Diagonal(x), jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec())) + 1,
}
traced = []
def noting(name, function):
    @jax.jit
    def compiled(x):
        traced.append(name)
        return jax.tree.leaves(function(x))
    return compiled
earlier = noting("earlier", jnp.sin)
earlier(1.0)
for name, use in USES.items():
    compiled = noting(name, use)
    for _ in range(2):
        compiled(jnp.ones(N))
    earlier(1.0)
    if traced != ["earlier", name]:
        print(name, traced)
    traced[:] = ["earlier"]
"""
    assert run(code) == []


def test_two_threads_use_a_name_first():
    code = """
import threading, structarrays as sa
barrier, found = threading.Barrier(8), []
def use():
    barrier.wait()
    found.append((sa.jacobian, sa.plot, repr(sa.eye(2))))
threads = [threading.Thread(target=use) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(found), len(set(found)))
"""
    assert run(code) == ["8", "1"]


def test_other_names_of_late_functions_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'to_text'"):
        late.to_text  # noqa: B018


COLLECTIONS = """
import gc, jax.numpy
{before}
frozen, ran = gc.get_freeze_count(), []
gc.callbacks.append(lambda phase, info: ran.append(info["generation"]))
import structarrays
made = [[] for _ in range(100)]
print(len(ran), gc.isenabled(), frozen, gc.get_freeze_count())
"""


@pytest.mark.parametrize("collects", [True, False])
def test_the_import_searches_for_no_garbage(collects):
    """Nor does the next object that is created: objects of the import count as old, and none stays frozen."""
    before = f"gc.collect(); gc.{'enable' if collects else 'disable'}()"
    assert run(COLLECTIONS.format(before=before)) == ["0", str(collects), "0", "0"]


def test_objects_that_the_user_froze_stay_frozen():
    _, _, before, after = run(COLLECTIONS.format(before="gc.collect(); gc.freeze()"))
    assert int(after) > 0.99 * int(before) > 10_000  # some are deleted meanwhile


def test_garbage_of_the_time_before_the_import_is_collected():
    code = """
import gc, weakref
class Node: pass
node = Node(); node.itself = node; dead = weakref.ref(node)
gc.disable(); del node; gc.enable()
import structarrays
gc.collect()
print(dead() is None)
"""
    assert run(code) == ["True"]
