"""Files that are written whole: what they replace, what they refuse, what they leave behind."""

import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from likeminds._util import atomic_files
from likeminds._util.atomic_files import (
    FileChangedError,
    FileVersion,
    folder_for,
    make_folder,
    place_for,
    write_whole,
)

needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs modes, links and pipes")


@pytest.fixture(params=["unnamed", "named"])
def scratch(request, monkeypatch):
    """Scratch files without a name, and with one, as on systems that have no others."""
    if request.param == "named":
        monkeypatch.setattr(atomic_files, "_OPEN_FILES", Path("/not/there"))
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("has no files without a name")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@needs_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_modes_are_kept(tmp_path, mode, scratch):
    target = tmp_path / "m"
    target.write_bytes(b"old")
    target.chmod(mode)
    write_whole(target, b"new")
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert names_in(tmp_path) == ["m"]


@needs_posix
def test_new_files_have_the_usual_mode(tmp_path, scratch):
    (tmp_path / "usual").write_bytes(b"")
    write_whole(tmp_path / "m", [b"n", memoryview(b"ew")])
    assert (tmp_path / "m").read_bytes() == b"new"
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "usual").stat().st_mode


@needs_posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files away")
def test_owners_are_kept(tmp_path):
    target = tmp_path / "m"
    target.write_bytes(b"old")
    os.chown(target, 1234, 4321)
    write_whole(target, b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (1234, 4321)


@needs_posix
def test_links_are_followed(tmp_path, scratch):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "model"
    target.write_bytes(b"old")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(target)
    write_whole(place_for(tmp_path / "first", "the model"), b"new")
    assert target.read_bytes() == b"new"
    assert (tmp_path / "first").readlink() == Path("second")
    assert names_in(tmp_path) == ["first", "second", "there"]
    assert names_in(tmp_path / "there") == ["model"]


@needs_posix
def test_links_to_what_is_not_there(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "not yet")
    write_whole(place_for(link, "the model"), b"new")
    assert (tmp_path / "not yet").read_bytes() == b"new"
    astray = tmp_path / "astray"
    astray.symlink_to(tmp_path / "no" / "folder")
    with pytest.raises(FileNotFoundError):
        place_for(astray, "the model")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ValueError):
        place_for(loop, "the model")


@needs_posix
def test_devices_and_pipes_are_refused_and_left_alone(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for target in (pipe, tmp_path / "link", Path("/dev/null")):
        with pytest.raises(ValueError):
            place_for(target, "the table")
        with pytest.raises(ValueError):
            write_whole(target, b"new")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert not Path("/dev/null").is_file()


def test_names_may_be_as_long_as_names_can_be(tmp_path):
    for letter in "aé":
        target = tmp_path / (letter * (255 // len(letter.encode())))
        write_whole(target, b"new")
        assert target.read_bytes() == b"new"


# Before any work.


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="root writes everywhere else")
def test_folders_that_cannot_be_written_to_are_refused_at_once(tmp_path):
    with pytest.raises(PermissionError):
        place_for("/proc/model", "the model")
    with pytest.raises(PermissionError):
        folder_for("/proc/a/b", "the tables")
    with pytest.raises(PermissionError):
        make_folder("/proc/a", "the tables")


@needs_posix
def test_protected_files_are_refused_at_once(tmp_path, monkeypatch):
    target = tmp_path / "m"
    target.write_bytes(b"old")
    target.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, how: not (how & os.W_OK))  # root may do all
    with pytest.raises(PermissionError):
        place_for(target, "the model")


def test_folders_are_made_when_they_are_needed(tmp_path):
    folder = tmp_path / "a" / "b"
    assert folder_for(folder, "the tables") == folder
    assert names_in(tmp_path) == []
    assert make_folder(folder, "the tables").is_dir()
    assert make_folder(folder, "the tables") == folder
    (tmp_path / "file").write_bytes(b"")
    for wrong in (tmp_path / "file", tmp_path / "file" / "in" / "it"):
        with pytest.raises(NotADirectoryError):
            folder_for(wrong, "the tables")


# At the same time.


def test_what_was_changed_since_it_was_read_is_not_replaced(tmp_path, scratch):
    target = tmp_path / "m"
    first = write_whole(target, b"first")
    assert first == FileVersion.of(target.stat())
    second = write_whole(target, b"other", replacing=first)
    with pytest.raises(FileChangedError):
        write_whole(target, b"mine!", replacing=first)
    assert target.read_bytes() == b"other"
    target.unlink()
    with pytest.raises(FileChangedError):
        write_whole(target, b"mine!", replacing=second)
    assert names_in(tmp_path) == []


def test_many_at_once_lose_nothing(tmp_path, scratch):
    target = tmp_path / "counts"
    write_whole(target, b"")
    together = threading.Barrier(4)

    def add(letter):
        together.wait()
        for _ in range(5):
            while True:
                with target.open("rb") as file:
                    version, before = FileVersion.of(os.fstat(file.fileno())), file.read()
                try:
                    write_whole(target, before + letter, replacing=version)
                    break
                except FileChangedError:
                    continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, (bytes([letter]) for letter in b"abcd")))
    assert sorted(target.read_bytes()) == sorted(b"abcd" * 5)
    assert names_in(tmp_path) == ["counts"]


# Interrupted.


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing_behind(tmp_path, scratch, failure):
    target = tmp_path / "m"
    target.write_bytes(b"old")

    def pieces():
        yield b"half"
        raise failure

    with pytest.raises(type(failure)):
        write_whole(target, pieces())
    assert target.read_bytes() == b"old"
    assert names_in(tmp_path) == ["m"]


def test_a_folder_that_cannot_be_locked_is_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "fcntl", None)
    write_whole(tmp_path / "m", b"new")
    assert (tmp_path / "m").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="scratch files have names here")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_process_that_is_killed(tmp_path, how):
    """Even of one that does not listen to signals, as a library cannot ask programs to."""
    (tmp_path / "m").write_bytes(b"old")
    code = (
        "import sys, time; from pathlib import Path\n"
        "from likeminds._util.atomic_files import write_whole\n"
        "def pieces():\n"
        "    yield b'half'; print('writing', flush=True); time.sleep(60); yield b'whole'\n"
        "write_whole(Path(sys.argv[1]), pieces())"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "m")], stdout=subprocess.PIPE
    )
    assert writer.stdout.readline() == b"writing\n"
    assert names_in(tmp_path) == ["m"]
    writer.send_signal(how)
    writer.wait()
    writer.stdout.close()
    assert (tmp_path / "m").read_bytes() == b"old"
    assert names_in(tmp_path) == ["m"]
