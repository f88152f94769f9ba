"""Files: whole or not there, never read where altered, written by one process at a time."""

import contextlib
import errno
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from beliefscope import store
from beliefscope.store import Busy, Damaged, lock, write_atomic

TREE = {"weights": jnp.arange(6.0).reshape(2, 3), "count": jnp.asarray(3)}
ARRAYS = {"actions": np.arange(5), "memory": np.linspace(0, 1, 7, dtype=np.float32)}
RECORD = {"episode": 3, "return": 0.1, "curve": [1.0, None]}
KINDS = {
    "tree.eqx": (lambda path: store.save_tree(path, TREE), lambda path: store.load_tree(path, TREE)),
    "arrays.npz": (lambda path: store.save_arrays(path, ARRAYS), store.load_arrays),
    "record.json": (lambda path: store.write_record(path, RECORD), store.read_record),
    "lines.jsonl": (lambda path: store.write_lines(path, [RECORD, RECORD]), store.read_lines),
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    save, load = KINDS[request.param]
    return tmp_path / request.param, save, load


def test_what_was_written_is_read(tmp_path):
    for name, (save, _) in KINDS.items():
        save(tmp_path / name)
    tree = store.load_tree(tmp_path / "tree.eqx", TREE)
    assert all(np.array_equal(tree[name], TREE[name]) for name in TREE)
    arrays = store.load_arrays(tmp_path / "arrays.npz")
    assert arrays.keys() == ARRAYS.keys()
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert store.read_record(tmp_path / "record.json") == RECORD
    assert store.read_lines(tmp_path / "lines.jsonl") == [RECORD, RECORD]


def test_the_same_content_gives_the_same_bytes(kind):
    path, save, _ = kind
    save(path)
    first = path.read_bytes()
    save(path)
    assert path.read_bytes() == first


def same(one, other):
    return all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))


def test_what_was_altered_is_refused_or_says_the_same(kind):
    """Some bits of a zip file, and the newline at a text's end, say nothing of the content."""
    path, save, load = kind
    save(path)
    content, whole, refused = path.read_bytes(), load(path), 0
    for place in np.random.default_rng(0).integers(len(content), size=100):
        altered = bytearray(content)
        altered[place] ^= 4
        path.write_bytes(altered)
        try:
            found = load(path)
        except Damaged:
            refused += 1
        else:
            assert same(found, whole)
    assert refused > 50
    for damage in (content[: len(content) // 3], content[:-23]):
        path.write_bytes(damage)
        with pytest.raises(Damaged, match=path.name):
            load(path)


def test_a_tree_of_other_shapes_is_refused(tmp_path):
    store.save_tree(tmp_path / "tree.eqx", TREE)
    with pytest.raises(Damaged, match="other arrays"):
        store.load_tree(tmp_path / "tree.eqx", {"weights": jnp.zeros((3, 3)), "count": jnp.asarray(3)})
    with pytest.raises(Damaged, match="more arrays"):
        store.load_tree(tmp_path / "tree.eqx", {"count": jnp.asarray(3)})


def test_the_tree_of_another_run_is_refused_and_an_older_one_without_a_name_is_not(tmp_path):
    path = tmp_path / "tree.eqx"
    store.save_tree(path, TREE, of="one")
    assert same(store.load_tree(path, TREE, of="one"), TREE)
    with pytest.raises(Damaged, match="checksum"):
        store.load_tree(path, TREE, of="other")
    store.save_tree(path, TREE)
    assert same(store.load_tree(path, TREE, of="one"), TREE)


def test_pickles_are_not_read(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, odd=np.array([object()]), allow_pickle=True)
    with pytest.raises(Damaged, match="cannot be read"):
        store.load_arrays(path)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_write_that_fails_names_the_file_and_leaves_the_old_one_and_no_other(number, tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_atomic(file, b"old")

    def fail(descriptor, content):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("beliefscope.store.files._write_some", fail)
    with pytest.raises(OSError, match=f"{os.strerror(number)}: '{file}'"):
        write_atomic(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_short_writes_are_taken_up_again(tmp_path, monkeypatch):
    monkeypatch.setattr("beliefscope.store.files._write_some", lambda fd, content: os.write(fd, content[:3]))
    write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_files_have_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_what_a_dead_process_left_is_cleared_and_what_a_living_one_writes_is_not(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    for number in (process.pid, os.getpid()):
        (tmp_path / f".file.{number}.tmp").touch()
    store.clear_unfinished([tmp_path])
    assert [file.name for file in tmp_path.iterdir()] == [f".file.{os.getpid()}.tmp"]


@pytest.mark.parametrize("name", [".notes.tmp", ".chapter.draft.tmp", ".1.tmp", ".notes.4000000.tmp.old"])
def test_a_file_that_is_not_named_as_unfinished_files_are_stays(name, tmp_path):
    (tmp_path / name).touch()
    store.clear_unfinished([tmp_path])
    assert (tmp_path / name).exists()


def test_a_lock_has_one_holder_and_leaves_no_file(tmp_path):
    path = tmp_path / "locks" / "piece"
    with lock(path):
        with pytest.raises(Busy, match="one process at a time"), lock(path):
            pass
        assert path.exists()
    assert not path.exists()
    with lock(path):
        pass


def test_the_kernel_lets_a_lock_go_when_its_holder_is_killed(tmp_path):
    path = tmp_path / "piece"
    code = f"import fcntl, time; f = open({str(path)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); "
    with subprocess.Popen([sys.executable, "-c", code + "time.sleep(60)"], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(Busy), lock(path):
            pass
        holder.kill()
        holder.wait()
        with lock(path):
            pass


def test_a_lock_is_never_held_twice_at_once(tmp_path):
    """Each adds one to a number, which a race would lose."""
    (tmp_path / "number").write_text("0")

    def count(_):
        done = 0
        while done < 20:
            with contextlib.suppress(Busy), lock(tmp_path / "lock"):
                (tmp_path / "number").write_text(str(int((tmp_path / "number").read_text()) + 1))
                done += 1

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count, range(3)))
    assert int((tmp_path / "number").read_text()) == 60


def test_its_errors_cross_from_process_to_process(tmp_path):
    for error in (Busy(tmp_path), Damaged(tmp_path, "it is not JSON")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_records_are_plain_json_with_their_sum(tmp_path):
    store.write_record(tmp_path / "record.json", RECORD)
    stored = json.loads((tmp_path / "record.json").read_text())
    assert len(stored.pop("sum")) == 16
    assert stored == RECORD
