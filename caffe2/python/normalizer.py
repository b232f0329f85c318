"""Normalizers of layers; see `caffe2.train.normalizer`."""

from caffe2.train.normalizer import BatchNormalizer, LayerNormalizer, Normalizer

__all__ = ["BatchNormalizer", "LayerNormalizer", "Normalizer"]
