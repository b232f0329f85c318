"""Tables in text files."""

import numpy as np
import pytest

from caffe2.python import core, workspace

TYPES = [4, 1]


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def run(type, inputs, outputs, **args):
    workspace.RunOperatorOnce(core.CreateOperator(type, inputs, outputs, **args))


@pytest.fixture
def create(tmp_path):
    def make(content, **args):
        path = tmp_path / "table.txt"
        path.write_bytes(content)
        args = {"filename": str(path), "field_types": TYPES, **args}
        run("CreateTextFileReader", [], ["reader"], **args)

    return make


def read(n=1):
    run("TextFileReaderRead", ["reader"], ["text", "number"], batch_size=n)
    text, number = workspace.FetchBlobs(["text", "number"])
    assert (text.dtype, number.dtype) == (object, np.float32)
    return text.tolist(), number.tolist()


@pytest.mark.parametrize("content", [b"x\t1\n\t-2.5e1\n", b"x\t1\r\n\t -2.5e1 ", b"x\t+1\n\t-25\n"])
def test_rows_are_read(content, create):
    create(content)
    assert read(3) == ([b"x", b""], [1, -25])
    assert read(3) == ([], [])


def test_batches_go_on_in_the_next_pass(create):
    create(b"x\t1\ny\t2\n", num_passes=2)
    assert read(3) == ([b"x", b"y", b"x"], [1, 2, 1])
    assert read(3) == ([b"y"], [2])
    assert read(3) == ([], [])


def test_nothing_to_read(create):
    for passes in (1, 2**31 - 1):
        create(b"", num_passes=passes)
        assert read() == ([], [])
    create(b"x\t1\n", num_passes=0)
    assert read() == ([], [])


def test_numbers(create):
    create(b"a\tnan\nb\tinf\nc\t1e50\n")
    assert np.isnan(read()[1][0])
    assert read(2)[1] == [np.inf, np.inf]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"x", "less than 2"),
        (b"", "less than 2"),
        (b"x\t1\t2", "more than 2"),
        (b"x\tabc", "'abc' where a number"),
        (b"x\t1a", "'1a'"),
        (b"x\t", "''"),
    ],
)
def test_rows_that_do_not_fit(line, text, create):
    create(b"x\t1\ny\t2\n" + line + b"\nz\t3\n")
    assert read() == ([b"x"], [1])
    for _ in range(2):
        with pytest.raises(RuntimeError, match=rf"TextFileReaderRead.*row 3 has.*{text}"):
            read(3)
    assert read() == ([b"y"], [2])


def test_what_is_refused(create, tmp_path):
    with pytest.raises(RuntimeError, match=r"CreateTextFileReader.*cannot be opened"):
        create(b"", filename=str(tmp_path / "none"))
    for types in ([4, 2], []):
        with pytest.raises(RuntimeError, match="field_types"):
            create(b"", field_types=types)
    create(b"x\t1\n")
    with pytest.raises(RuntimeError, match=r"1 outputs.*2 fields"):
        run("TextFileReaderRead", ["reader"], ["text"])


def test_files_can_be_kept_away(tmp_path):
    (tmp_path / "table.txt").write_bytes(b"x\t1\n")
    strict = workspace.Workspace()
    strict.allow_files(False)
    net = core.Net("open")
    net.CreateTextFileReader(
        [], ["reader"], filename=str(tmp_path / "table.txt"), field_types=TYPES
    )
    with pytest.raises(RuntimeError, match="reads or writes files"):
        strict.run(net)
