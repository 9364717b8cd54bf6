"""Every symbol of the course, once: a letter means the same on every card."""

from __future__ import annotations

from app.theory.formula import Symbol

_TABLE = (
    Symbol("P", "P", "GPUs, one rank each", "GPUs"),
    Symbol("L", "L", "layers of the model", "layers"),
    Symbol("H", "H", "hidden width", "elements"),
    Symbol("T", "T", "tokens of one micro-batch on one replica (micro-batch size times sequence length)", "tokens"),
    Symbol("m", "m", "micro-batches of a pipeline step", "micro-batches"),
    Symbol("v", "v", "chunks of layers on each GPU", "chunks"),
    Symbol("A", "A", "micro-steps accumulated into one optimizer step", "micro-steps"),
    Symbol("bucket", "j", "which bucket, counted from 1 in the order of sending", ""),
    Symbol("bucket_mib", "b_{\\text{MiB}}", "size at which a bucket after the first is closed", "MiB"),
    Symbol("s", "s", "elements of the full buffer", "elements"),
    Symbol("elements", "e", "how many numbers", "elements"),
    Symbol(
        "dtype",
        "b_{\\text{dtype}}",
        "type of each number, which sets its bytes: fp64 8, fp32 4, bf16 and fp16 2, fp8 1",
        "bytes per element",
    ),
    Symbol("byte_count", "N_{\\text{bytes}}", "how many bytes", "bytes"),
    Symbol("params", "\\Psi", "parameters of the model", "parameters"),
    Symbol("zero_stage", "z", "ZeRO stage: 0 cuts nothing, 1 optimizer state, 2 gradients too, 3 weights too", ""),
    Symbol("weight_bytes", "w", "bytes of weights per parameter, master copies not included", "bytes per parameter"),
    Symbol("gradient_bytes", "g", "bytes of gradient per parameter", "bytes per parameter"),
    Symbol(
        "optimizer_bytes", "o", "bytes of optimizer state per parameter, fp32 master copies included", "bytes per parameter"
    ),
    Symbol("F", "F", "GPUs that share one copy of the model", "GPUs"),
    Symbol("n", "n", "bytes of the buffer", "bytes"),
    Symbol("alpha", "\\alpha", "time that a message takes however short it is", "seconds"),
    Symbol("B", "B", "bandwidth of a link in one direction", "bytes per second"),
    Symbol("seconds", "t_{\\text{call}}", "time of one call", "seconds"),
    Symbol("nodes", "N", "machines", "nodes"),
    Symbol("base", "t_0", "fixed latency of the algorithm and protocol", "microseconds"),
    Symbol("hardware", "t_{\\text{hw}}", "latency of a step inside a node", "microseconds"),
    Symbol("network", "t_{\\text{net}}", "latency of a step between nodes", "microseconds"),
    Symbol("overhead", "t_{\\text{cpu}}", "the processor's part in each step over several nodes", "microseconds"),
    Symbol("t", "t", "GPUs in a tensor-parallel group", "GPUs"),
    Symbol("c", "c", "GPUs in a context-parallel group", "GPUs"),
    Symbol("p", "p", "GPUs in a pipeline", "GPUs"),
    Symbol("d", "d", "replicas of the model, each with data of its own", "replicas"),
    Symbol("b", "b", "sequences of one micro-batch", "sequences"),
    Symbol("batch", "G", "sequences of one optimizer step (the global batch)", "sequences"),
    Symbol("sequence", "\\ell", "tokens of one sequence", "tokens"),
    Symbol("tokens", "N_{\\text{tokens}}", "how many tokens", "tokens"),
    Symbol("first_mean", "\\bar{x}_1", "mean over the tokens of the first micro-batch", ""),
    Symbol("second_mean", "\\bar{x}_2", "mean over the tokens of the second micro-batch", ""),
    Symbol("first_tokens", "n_1", "tokens of the first micro-batch", "tokens"),
    Symbol("second_tokens", "n_2", "tokens of the second micro-batch", "tokens"),
    Symbol("gradient", "g_{\\text{sum}}", "gradient of the summed loss in one process with the whole batch", ""),
    Symbol("start", "G_0", "sequences of the first optimizer step", "sequences"),
    Symbol("increment", "\\Delta G", "sequences added each time the batch grows", "sequences"),
    Symbol("samples", "N_{\\text{samples}}", "how many training samples (sequences)", "sequences"),
    Symbol("increments", "k", "times the batch grows", "times"),
    Symbol("achieved", "\\Phi", "rate that the job reaches", "FLOP per second"),
    Symbol("peak", "\\Phi_{\\text{peak}}", "rate that the hardware could reach, in the same unit", "FLOP per second"),
)
SYMBOLS: dict[str, Symbol] = {symbol.name: symbol for symbol in _TABLE}
