"""Arrays on disk: what is saved comes back, bit by bit; a damaged or hostile file gives an error and nothing else."""

import errno
import functools
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structarrays as sa
from structarrays.testing import STRUCTURES, sample


def through_file(tree):
    file = io.BytesIO()
    sa.save(file, tree)
    file.seek(0)
    return sa.load(file)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert type(x) is type(y)
        if not isinstance(x, jax.Array | np.ndarray):
            assert x == y or x != x and y != y
            continue
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.each_parameter
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure(structure):
    for i, dtype in enumerate(("float64", "complex64", "int64", "bool")):
        for core in ((6, 6), (6, 4)):
            x = sample(structure, core, batch=((), (2,))[i % 2], dtype=dtype)
            if x is not None:
                same(through_file(x), x)
                same(pickle.loads(pickle.dumps(x)), x)


def test_backgrounds_assumptions_and_padding():
    d = sa.Diagonal([1.0, 2.0])
    padded = sa.Sparse.from_dense(np.eye(3), nnz=5)
    x = {
        "background": sa.exp(d),
        "assumed": sa.assume(d, "positive_definite"),
        "padded": padded,
        "turned": padded.mT,
        "product": sa.LowRank(np.ones((9, 4)), np.ones((9, 4))) * sa.LowRank(np.ones((9, 4)), np.ones((9, 4))),
        "adjoint": sa.Fourier(4).mT,
    }
    y = through_file(x)
    same(y, x)
    assert (
        "positive_definite" in y["assumed"].assumptions
        and y["padded"].padded
        and y["background"].background is not None
    )


def test_containers_numbers_and_other_arrays():
    tree = {
        "list": [1, True, None, "text", 2.5, float("inf"), -0.0, 3 - 4j, 10**30],
        ("a", 1): (jnp.arange(3, dtype=jnp.int8), np.float32(2.0), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        "narrow": jnp.ones(3, jnp.bfloat16),
        "empty": [np.zeros((0, 3)), {}, [], ()],
    }
    y = through_file(tree)
    same(y["list"], tree["list"])
    assert repr(y["list"]) == repr(tree["list"]) and [type(v) for v in y["list"]] == [type(v) for v in tree["list"]]
    assert y["narrow"].dtype == jnp.bfloat16 and isinstance(y["narrow"], jax.Array)
    np.testing.assert_array_equal(y["a", 1][2], tree["a", 1][2])
    assert isinstance(y["a", 1][2], np.ndarray) and isinstance(y["a", 1][0], jax.Array)
    assert y["empty"][1:] == tree["empty"][1:] and y["empty"][0].shape == (0, 3)


def test_results_keep_their_class():
    a = sa.asarray([[2.0, 1.0], [1.0, 3.0]])
    for result in (sa.linalg.qr(a), sa.linalg.cho_factor(a, lower=True), sa.linalg.lu_factor(a), sa.linalg.slogdet(a)):
        y = through_file(result)
        assert type(y) is type(result)
        same(y, result)
    np.testing.assert_allclose(sa.linalg.cho_solve(through_file(sa.linalg.cho_factor(a)), a), np.eye(2), atol=1e-15)


def test_numpy_reads_the_numbers(tmp_path):
    path = tmp_path / "a.npz"
    sa.save(path, sa.Diagonal([1.0, 2.0, 3.0]))
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["0"], [1.0, 2.0, 3.0])
        assert json.loads(archive["structarrays.json"])["tree"]["structure"]["class"] == "Diagonal"


def test_a_file_is_replaced_when_the_new_one_is_complete(tmp_path):
    path = tmp_path / "a.npz"
    sa.save(path, sa.eye(3))
    with pytest.raises(TypeError, match="object"):
        sa.save(path, [sa.eye(4), object()])
    assert sa.load(path).shape == (3, 3) and os.listdir(tmp_path) == ["a.npz"]
    sa.save(str(path), sa.eye(5))
    assert sa.load(str(path)).shape == (5, 5)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": [0, object()]}, r"save: tree\['a'\]\[1\] must be an array, .*, got object"),
        ([np.array([None])], r"tree\[0\] must have a numeric or boolean dtype, got object"),
        (jax.random.key(0), "key_data"),
        ({1, 2}, "got set"),
    ],
)
def test_what_cannot_be_saved_is_named(tree, message):
    with pytest.raises(TypeError, match=message):
        sa.save(io.BytesIO(), tree)


def test_traced_arrays_cannot_be_saved():
    with pytest.raises(TypeError, match=r"part 0 of tree\['x'\] is traced"):
        jax.jit(lambda x: sa.save(io.BytesIO(), {"x": x}))(sa.eye(3))


def test_a_dtype_that_takes_x64():
    file = io.BytesIO()
    sa.save(file, sa.Diagonal([1.0]))
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match="jax_enable_x64"):
            sa.load(file)
    finally:
        jax.config.update("jax_enable_x64", True)
    assert sa.load(file).dtype == sa.float64


# ---- damaged and hostile files -----------------------------------------------------------------------------------------


def written(tree) -> bytes:
    file = io.BytesIO()
    sa.save(file, tree)
    return file.getvalue()


def rewritten(tree, change, compression=zipfile.ZIP_STORED):
    """A file whose description was changed."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(written(tree))) as old, zipfile.ZipFile(target, "w", compression) as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith(".json"):
                description = json.loads(content)
                change(description)
                content = json.dumps(description)
            new.writestr(name, content)
    return io.BytesIO(target.getvalue())


TREE = {
    "sparse": sa.Sparse([1.0, 2.0], ([0, 2], [1, 0]), (3, 2)),
    "p": sa.Permutation([1, 0, 2]),
    "t": sa.tridiagonal([1.0], [2.0, 2], [1.0]),
}


def test_truncated_and_damaged_files():
    content = written(TREE)
    for length in range(0, len(content), 37):
        with pytest.raises(ValueError, match="load: file must be written by structarrays.save and undamaged"):
            sa.load(io.BytesIO(content[:length]))
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(content)
        for place in rng.integers(len(content), size=3):
            damaged[place] = rng.integers(256)
        try:
            np.asarray(sa.load(io.BytesIO(bytes(damaged)))["sparse"])
        except (ValueError, KeyError):
            pass


def fields(description, name):
    return dict((k["value"], v) for k, v in description["tree"]["dict"])[name]["structure"]


HOSTILE = {
    "another format": lambda d: d.update(format="other"),
    "another version": lambda d: d.update(version=99),
    "no tree": lambda d: d.pop("tree"),
    "an unknown node": lambda d: d.update(tree={"call": "os.system"}),
    "an unknown class": lambda d: fields(d, "t").update({"class": "Nothing"}),
    "a class elsewhere": lambda d: fields(d, "t").update({"class": "os:PathLike"}),
    "another class": lambda d: fields(d, "t").update({"class": "Toeplitz"}),
    "an unknown result": lambda d: d.update(tree={"result": ["system", {"value": "ls"}]}),
    "offsets that repeat": lambda d: fields(d, "t").update(meta=[[0, 0, 0], [2, 2]]),
    "offsets outside": lambda d: fields(d, "t").update(meta=[[-1, 0, 7], [2, 2]]),
    "offsets that are texts": lambda d: fields(d, "t").update(meta=[["a", 0, 1], [2, 2]]),
    "a shape that does not fit": lambda d: fields(d, "t").update(meta=[[-1, 0, 1], [9, 9]]),
    "a negative shape": lambda d: fields(d, "t").update(meta=[[-1, 0, 1], [-2, 2]]),
    "a part too few": lambda d: fields(d, "t")["parts"].pop(),
    "a part twice": lambda d: fields(d, "t")["parts"].__setitem__(0, fields(d, "t")["parts"][1]),
    "no such member": lambda d: fields(d, "t")["parts"].__setitem__(0, {"jax": 99}),
    "a part that is a text": lambda d: fields(d, "t")["parts"].__setitem__(0, {"value": "x"}),
    "an unknown assumption": lambda d: fields(d, "t").update(assumptions=["even"]),
    "half an assumption": lambda d: fields(d, "t").update(assumptions=["positive_definite"]),
    "coordinates outside": lambda d: fields(d, "sparse").update(meta=[[2, 2], [0, 1], False]),
    "coordinates in another order": lambda d: fields(d, "sparse").update(meta=[[3, 2], [1, 0], False]),
    "a sparse array that is not sorted": lambda d: fields(d, "sparse")["parts"].reverse(),
    "a permutation of fewer": lambda d: fields(d, "p")["parts"].__setitem__(0, fields(d, "sparse")["parts"][1]),
    "a dtype of objects": lambda d: fields(d, "p").update(meta={"dtype": "object"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_descriptions(name):
    with pytest.raises(ValueError, match="load: file must be written by structarrays.save and undamaged"):
        sa.load(rewritten(TREE, HOSTILE[name]))


def test_compressed_members_and_numbers_that_are_none():
    with pytest.raises(ValueError, match="compressed"):
        sa.load(rewritten(TREE, lambda d: None, zipfile.ZIP_DEFLATED))
    for array, message in ((np.array([{}]), "header"), (np.zeros(3, "V8"), "header"), (b"\x93NUMPY\x01\x00", "load:")):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr(
                "structarrays.json", json.dumps({"format": "structarrays", "version": 1, "tree": {"numpy": 0}})
            )
            member = io.BytesIO()
            if isinstance(array, bytes):
                member.write(array)
            else:
                np.save(member, array, allow_pickle=True)
            archive.writestr("0.npy", member.getvalue())
        with pytest.raises(ValueError, match=message):
            sa.load(target)


@pytest.mark.parametrize("depth", [249, 600, 100_000])
@pytest.mark.parametrize("limit", [1000, 20_000])
def test_very_deep_descriptions(limit, depth, request):
    """Python's limit of recursion decides about none of them: not how deep it is, nor whether a version counts what is compiled."""
    # Libraries that a test before has imported may have raised it.
    request.addfinalizer(functools.partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(limit)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        tree = '{"list": [' * depth + '{"value": 1}' + "]}" * depth
        archive.writestr("structarrays.json", '{"format": "structarrays", "version": 1, "tree": ' + tree + "}")
    if depth < 250:
        found = sa.load(target)
        while isinstance(found, list):
            (found,) = found
        assert found == 1
        return
    with pytest.raises(ValueError, match=f"load: .* has {2 * depth + 2} levels of nesting, at most 500 are allowed"):
        sa.load(target)


def test_brackets_in_texts_are_no_levels():
    tree = {"[" * 1000: '"' + "{[" * 1000 + '\\"'}
    assert sa.load(io.BytesIO(written(tree))) == tree


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_what_cannot_be_read_is_not_written(limit, request, tmp_path):
    request.addfinalizer(functools.partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(limit)
    circle: list = []
    circle.append(circle)
    deep: list = [sa.eye(2)]
    for _ in range(600):
        deep = [deep]
    for tree in (circle, deep):
        with pytest.raises(ValueError, match="save: tree is nested too deeply"):
            sa.save(tmp_path / "a.npz", tree)
    assert not list(tmp_path.iterdir())
    deep = [sa.eye(2)]
    for _ in range(160):
        deep = {1: deep} if len(deep) == 1 and isinstance(deep, list) else [deep]
    found = sa.load(io.BytesIO(written(deep)))
    while not isinstance(found, sa.Array):
        found = found[1] if isinstance(found, dict) else found[0]
    np.testing.assert_array_equal(np.asarray(found), np.eye(2))


def test_a_disk_that_fails_is_not_a_damaged_file():
    class Failing(io.BytesIO):
        def read(self, *args):
            if self.tell() < 100:  # where the first array stands; the table of contents is at the end
                raise OSError(errno.EIO, "Input/output error")
            return super().read(*args)

    with pytest.raises(OSError, match="Input/output error"):
        sa.load(Failing(written(sa.eye(3))))


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        sa.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        sa.save(tmp_path / "no folder" / "a.npz", sa.eye(3))


def test_a_class_of_a_user_has_to_be_imported():
    class Mine(sa.Diagonal):
        __slots__ = ()

    content = written(Mine([1.0, 2.0]))
    assert type(sa.load(io.BytesIO(content))) is Mine
    code = "import io, sys, structarrays as sa; sa.load(io.BytesIO(sys.stdin.buffer.read()))"
    run = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=False)
    assert run.returncode and b"import test_files first" in run.stderr.replace(b"tests.", b"")


def test_a_path_of_bytes(tmp_path):
    path = str(tmp_path / "x.npz").encode()
    sa.save(path, sa.eye(3))
    assert type(sa.load(path)) is sa.Identity
