"""ONNX models: run by this engine, and made of nets.  Needs the package `onnx`."""
