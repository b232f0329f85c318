"""Harness cases of coupled blobs, reservoirs, maps and text files."""

from caffe2.testing import Case, anything

CASES = [Case("DataCouple", blob=[anything("N", 2)], mismatch={"blob": None})]

SPECIAL = {
    "ReservoirSampling": "tests/engine/test_reservoir.py",
    "CreateBlobsQueueDB": "tests/engine/test_queue_database.py",
    **dict.fromkeys(("CreateMap", "KeyValueToMap", "MapToKeyValue"), "tests/engine/test_maps.py"),
    **dict.fromkeys(
        ("CreateTextFileReader", "TextFileReaderRead"), "tests/engine/test_text_file.py"
    ),
}

LOOSER = {
    "DataCouple": "nothing to couple is an error",
    "ReservoirSampling": "4 inputs and 2 outputs, or 7 and 4",
}
