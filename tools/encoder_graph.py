"""The bundled model's graph: BundledModel as a chain of the few fused operations that ONNX Runtime computes fastest.

An encoder of six layers (Devlin et al., 2019; Wang et al., 2020) with mean pooling and normalisation: ``input_ids`` (int64,
batch x length) gives ``embedding`` (float32, batch x 384, unit length). There is no attention mask, since a text is never
padded. Matrix products are int8: weights per output channel in 7 of 8 bits (reduced range), which keeps processors without
VNNI exact; activations are quantised at run time. Word embeddings are int8, too, with a scale for each word.

It is written by hand, because what an exporter and an optimiser make of the same model is slower: the scores of attention go
through memory once for each of four operations, and the sum and normalisation that follow every layer are fused into an
operation that takes five times as long as the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]

HEADS = 12
_FUSED = "com.microsoft"
_EPSILON = 1e-12
_REDUCED_RANGE = 63
_FULL_RANGE = 127


def encoder_graph(weights: Mapping[str, Array], max_tokens: int) -> onnx.ModelProto:
    """Return the graph of a BERT encoder's weights, named as transformers names them, for texts of up to `max_tokens`."""
    layers = len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})
    graph = _Graph(weights)
    tokens = graph.embeddings(max_tokens)
    for number in range(layers):
        tokens = graph.layer(tokens, f"encoder.layer.{number}")
    pooled = graph.add("ReduceMean", [tokens, graph.constant("length_axis", np.array([1]))], "pooled", keepdims=0)
    graph.add("LpNormalization", [pooled], "embedding", axis=-1, p=2)
    return graph.model(dimension=len(weights["embeddings.LayerNorm.weight"]))


class _Graph:
    """Nodes and constants, in order; each node is named by what it gives."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def model(self, dimension: int) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])]
        outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", dimension])]
        graph = helper.make_graph(self._nodes, "encoder", inputs, outputs, self._constants)
        versions = [helper.make_opsetid("", 18), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=9)
        onnx.checker.check_model(model)
        return model

    def add(self, operation: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: int | float) -> str:
        self._nodes.append(helper.make_node(operation, inputs, [output], output, domain=domain, **attributes))
        return output

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def embeddings(self, max_tokens: int) -> str:
        words, positions, kinds = (
            self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        rows, scales = _quantised(words, _FULL_RANGE)
        for name, table in (("rows", rows), ("scales", scales[:, np.newaxis])):
            self.add("Gather", [self.constant(f"word_{name}", table), "input_ids"], name)
        self.add("Mul", [self.add("Cast", ["rows"], "float_rows", to=TensorProto.FLOAT), "scales"], "words")
        self.constant("places", positions[:max_tokens] + kinds[0])
        start, end = self.constant("start", np.array([0])), self.add("Shape", ["input_ids"], "length", start=1, end=2)
        place = self.add("Slice", ["places", start, end, start], "places_of_words")
        return self._normalised("words", place, "embeddings.LayerNorm")

    def layer(self, tokens: str, name: str) -> str:
        parts = [self._linear(tokens, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        attention = self.add("MultiHeadAttention", parts, f"{name}.attention", _FUSED, num_heads=HEADS)
        joined = self._linear(attention, f"{name}.attention.output.dense")
        attended = self._normalised(joined, tokens, f"{name}.attention.output.LayerNorm")
        wide = self._linear(attended, f"{name}.intermediate.dense")
        narrow = self._linear(self.add("Gelu", [wide], f"{name}.gelu", _FUSED), f"{name}.output.dense")
        return self._normalised(narrow, attended, f"{name}.output.LayerNorm")

    def _linear(self, tokens: str, name: str) -> str:
        weight, scales = _quantised(self._weights[f"{name}.weight"], _REDUCED_RANGE)
        inputs = [
            tokens,
            self.constant(f"{name}.weight", weight.T),
            self.constant(f"{name}.scale", scales),
            self.constant(f"{name}.zero", np.zeros(len(scales), np.int8)),
            self.constant(f"{name}.bias", self._weights[f"{name}.bias"]),
        ]
        return self.add("DynamicQuantizeMatMul", inputs, name, _FUSED)

    def _normalised(self, tokens: str, others: str, name: str) -> str:
        total = self.add("Add", [tokens, others], f"{name}.sum")
        scale, bias = (self.constant(f"{name}.{part}", self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", [total, scale, bias], name, axis=-1, epsilon=_EPSILON)


def _quantised(weight: Array, largest: int) -> tuple[npt.NDArray[np.int8], Array]:
    """Return the rows of a matrix as int8, the largest value of each as `largest`, and the rows' scales."""
    scales = np.maximum(np.abs(weight).max(axis=1), 1e-8) / largest
    return np.round(weight / scales[:, np.newaxis]).astype(np.int8), scales.astype(np.float32)
