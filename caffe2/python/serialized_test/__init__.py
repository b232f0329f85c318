"""Tests of operators that the original recorded results of."""
