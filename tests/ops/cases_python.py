"""Operators whose functions come from the process: what they do is tested by hand."""

CASES = []
SPECIAL = {
    "Python": "tests/engine/test_python_operators.py",
    "PythonGradient": "tests/engine/test_python_operators.py",
}
