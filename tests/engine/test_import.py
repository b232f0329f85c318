"""Importing is silent and light."""

import subprocess
import sys


def test_the_old_face_imports_silently_and_without_heavy_modules():
    code = (
        "import sys\n"
        "from caffe2.python import core, workspace, brew, model_helper, optimizer\n"
        "heavy = {'matplotlib', 'torch', 'onnx', 'rich', 'pydot', 'PIL'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_graph_and_operators_do_not_need_the_engine():
    code = (
        "import sys\n"
        "sys.modules['caffe2._native'] = None\n"
        "import caffe2.ops, caffe2.graph.net\n"
        "caffe2.ops.all()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
