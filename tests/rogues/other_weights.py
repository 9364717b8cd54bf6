"""data_parallel that sends the right bytes and trains the wrong model: it spoils a weight after each step."""

import torch

from tests.rogues.wrapped import Wrapped


class Spoiled(Wrapped):
    def step(self) -> None:
        super().step()
        with torch.no_grad():
            self.parameters()[0].add_(0.001)


STRATEGIES = {"data_parallel": lambda context: Spoiled(context, lambda _: None)}
SPECS = ()
