"""Saved nets by name: folders with init_net.pb and predict_net.pb, kept on this machine.

They are in the folder that the environment variable CAFFE2_MODELS names, else ~/.caffe2/models.
`caffe2.python.models.<name>` is the model of that name: `init_net` and `predict_net`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from caffe2.graph.errors import UsageError
from caffe2.graph.reading import read_message
from caffe2.proto import caffe2_pb2

DOWNLOAD_BASE_URL = "https://s3.amazonaws.com/download.caffe2.ai/models/"
_FILES = ("init_net.pb", "predict_net.pb")


def models_folder() -> Path:
    """Where models are kept."""
    given = os.environ.get("CAFFE2_MODELS")
    return Path(given) if given else Path.home() / ".caffe2" / "models"


def getURLFromName(name: str, filename: str) -> str:
    """Where a file of a model was published."""
    return f"{DOWNLOAD_BASE_URL}{name}/{filename}"


def downloadFromURLToFile(url: str, filename: str, show_progress: bool = True) -> None:
    """Writes what is at a URL to a file, whole or not at all.  RuntimeError when it cannot be had.

    `show_progress` has no effect.
    """
    target = Path(filename)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        try:
            with urllib.request.urlopen(url, timeout=30) as source:
                shutil.copyfileobj(source, part)
        except (urllib.error.URLError, OSError, ValueError) as error:
            Path(part.name).unlink()
            raise RuntimeError(f"Could not download {url}: {error}") from None
    Path(part.name).replace(target)


def deleteDirectory(top_dir: str) -> None:
    """Removes a folder with all that is in it."""
    shutil.rmtree(top_dir)


class ModelDownloader:
    """Models by name, downloaded where they are not on this machine."""

    def __init__(self, model_env_name: str = "CAFFE2_MODELS") -> None:
        given = os.environ.get(model_env_name)
        self._folder = Path(given) if given else models_folder()

    def get_c2_model(self, model_name: str) -> tuple[Any, Any, Mapping[str, Any]]:
        """Its init net, its predict net, and what is known of its inputs (value_info.json).

        RuntimeError when it is neither here nor can be downloaded.
        """
        folder = self._folder / model_name
        for name in _FILES:
            if not (folder / name).exists():
                downloadFromURLToFile(getURLFromName(model_name, name), str(folder / name))
        info = folder / "value_info.json"
        known = json.loads(info.read_text(encoding="utf-8")) if info.exists() else {}
        nets = [read_message(caffe2_pb2.NetDef, (folder / n).read_bytes(), n) for n in _FILES]
        return nets[0], nets[1], known

    get_c2_model_dbg = get_c2_model


def model_module(full_name: str) -> ModuleType:
    """A kept model as a module with `init_net` and `predict_net`, the bytes of its nets.

    ModuleNotFoundError with the folder that is missing.
    """
    folder = models_folder() / full_name.rpartition(".")[2]
    if not all((folder / name).exists() for name in _FILES):
        raise ModuleNotFoundError(
            f"No module named '{full_name}': there is no model in {folder} "
            f"({' and '.join(_FILES)})",
            name=full_name,
        )
    module = ModuleType(full_name, f"The model in {folder}.")
    module.__dict__.update(
        {name.removesuffix(".pb"): (folder / name).read_bytes() for name in _FILES}
    )
    return module


class ModelFinder:
    """Imports kept models as modules of a package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, full_name: str, path: Any = None, target: Any = None) -> Any:
        import importlib.machinery

        package, _, name = full_name.rpartition(".")
        if package != self._package or not (models_folder() / name / _FILES[0]).exists():
            return None
        return importlib.machinery.ModuleSpec(full_name, self)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> ModuleType:
        return model_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it is whole."""


def serve_models(package: str) -> None:
    """Lets kept models be imported as modules of a package."""
    if not any(isinstance(finder, ModelFinder) for finder in sys.meta_path):
        sys.meta_path.append(ModelFinder(package))


def install(names: list[str]) -> None:
    """Downloads models into the folder of models.  UsageError for a name that is a path."""
    for name in names:
        if not name or name != Path(name).name:
            raise UsageError(f"'{name}' is no name of a model")
        ModelDownloader().get_c2_model(name)
        print(f"{name}: {models_folder() / name}")
