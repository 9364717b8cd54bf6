"""A page that fills slots with their names."""

from __future__ import annotations

from collections.abc import Mapping


class NamedSlots:
    """Every slot as its kind, name and parameters in square brackets."""

    def figure(self, name: str, params: Mapping[str, str]) -> str:
        return f"[figure {' '.join([name, *(f'{key}={value}' for key, value in sorted(params.items()))])}]"

    def question(self, question_id: str) -> str:
        return f"[question {question_id}]"

    def experiment(self, experiment_id: str) -> str:
        return f"[experiment {experiment_id}]"

    def prediction(self, prediction_id: str) -> str:
        return f"[prediction {prediction_id}]"

    def recall(self, prediction_id: str) -> str:
        return f"[recall {prediction_id}]"
