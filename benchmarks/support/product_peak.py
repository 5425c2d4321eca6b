"""The fastest that ONNX Runtime multiplies matrices on this machine: the limit no embedding can exceed.

A model of one `MatMulInteger` (unsigned activations, signed constant weights, 32-bit sums), or one `MatMul` of floats, is
written out as protobuf bytes, so that the package `onnx` is not needed. One session a processor, each on one thread, all at
once; the best of some shapes counts.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

_SHAPES = ((256, 384, 1536), (256, 1536, 384), (256, 1024, 1024), (512, 2048, 2048), (1024, 4096, 1024))
"""Rows of the activations, their width, and the width of the result; the first two are the encoder's own."""
_SECONDS = 0.5
_ATTEMPTS = 3
_FLOAT, _UINT8, _INT8, _INT32 = 1, 2, 3, 6
"""Element types, numbered as in ONNX."""


@dataclass(frozen=True, slots=True)
class _Product:
    """An operator, and the element types of activations, weights and result."""

    operator: str
    activations: int
    weights: int
    result: int


_INTEGERS = _Product("MatMulInteger", _UINT8, _INT8, _INT32)
_FLOATS = _Product("MatMul", _FLOAT, _FLOAT, _FLOAT)


def int8_peak(threads: int) -> tuple[float, tuple[int, int, int]]:
    """Return the most 8-bit multiply-adds a second (in 10^9) of so many threads together, and the shape that reached it."""
    return max((_rate(_INTEGERS, shape, threads), shape) for _ in range(_ATTEMPTS) for shape in _SHAPES)


def float_peak(threads: int) -> float:
    """Return the most multiply-adds of floats a second (in 10^9) of so many threads together."""
    return max(_rate(_FLOATS, shape, threads) for shape in _SHAPES)


def _rate(product: _Product, shape: tuple[int, int, int], threads: int) -> float:
    rows, inner, columns = shape
    model = _model(product, inner, columns)
    sessions = [_session(model) for _ in range(threads)]
    kind = np.uint8 if product.activations == _UINT8 else np.float32
    activations = np.random.default_rng(1).integers(0, 255, (rows, inner), dtype=np.uint8).astype(kind)
    for session in sessions:
        session.run(["y"], {"a": activations})
    counts = [0] * threads
    end = time.perf_counter() + _SECONDS

    def work(number: int) -> None:
        while time.perf_counter() < end:
            sessions[number].run(["y"], {"a": activations})
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) * rows * inner * columns / (time.perf_counter() - start) / 1e9


def _session(model: bytes) -> InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


# The model's bytes. Numbers of fields are those of onnx.proto.


def _model(product: _Product, inner: int, columns: int) -> bytes:
    """Return y = a · b; b (inner x columns) is constant, within 7 bits as the bundled model's weights are."""
    kind = np.int8 if product.weights == _INT8 else np.float32
    weights = np.random.default_rng(2).integers(-64, 64, (inner, columns), dtype=np.int8).astype(kind)
    node = _text(1, "a") + _text(1, "b") + _text(2, "y") + _text(4, product.operator)
    constant = _number(1, inner) + _number(1, columns) + _number(2, product.weights) + _text(8, "b")
    graph = (
        _field(1, node)
        + _text(2, "peak")
        + _field(5, constant + _field(9, weights.tobytes()))
        + _field(11, _value("a", product.activations, inner))
        + _field(12, _value("y", product.result, columns))
    )
    operators = _text(1, "") + _number(2, 17)
    return _number(1, 8) + _field(7, graph) + _field(8, operators)


def _value(name: str, kind: int, width: int) -> bytes:
    """Describe a matrix of any number of rows."""
    shape = _field(1, _text(2, "rows")) + _field(1, _number(1, width))
    return _text(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, shape)))


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
