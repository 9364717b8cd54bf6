"""What a strategy sends: as the lesson's formula states it, and exactly as it runs on a backend, with the causes of the gap.

`predict` answers for any world size, also where a run is refused (`kernels.spec.experiment_faults` decides that): then
"exact" is what the formula gives for an uneven split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from app.theory import collectives, data_parallel, gloo, pipeline_parallel, tensor_parallel
from app.theory.checks import whole
from app.theory.units import BYTES_PER_ELEMENT
from app.theory.volume import UNEVEN, Cause, Volume, sent_by_rank, spread_evenly
from kernels import schedule
from kernels.spec import STRATEGY_SPECS, Experiment, OptionValue, predicted_option_faults

BACKENDS = ("gloo", "nccl")


@dataclass(frozen=True)
class Prediction:
    """Two volumes of one step and what separates them.

    `taught` is the lesson's formula, `exact` this backend's traffic: what it says of single ranks (nothing, where
    `exact.by_rank` is None) may be held against a measurement, as its total may. `dtype` is what the elements travel in.
    """

    strategy: str
    taught: Volume
    exact: Volume
    causes: tuple[Cause, ...]
    dtype: str = "fp32"

    @property
    def gap_elements(self) -> Fraction:
        """Elements that `exact` sends beyond `taught`, all GPUs together; negative where it sends fewer."""
        return self.exact.total - self.taught.total


@dataclass(frozen=True)
class _Setting:
    """What was asked for, checked."""

    strategy: str
    P: int
    L: int
    H: int
    T: int
    m: int
    backend: str
    options: Mapping[str, OptionValue]


@dataclass(frozen=True)
class _Traffic:
    """One collective, or several, as a backend runs them."""

    volume: Volume
    causes: tuple[Cause, ...]


def predict(strategy: str, *, P: int, L: int = 2, H: int = 4, T: int = 1, m: int = 1, backend: str = "gloo",
            options: Mapping[str, OptionValue] | None = None) -> Prediction:
    """Volumes of one training step (or one collective) of `strategy`; P may be larger than any machine.

    Raises ValueError that names the field, its value and what is allowed.
    """
    if strategy not in STRATEGY_SPECS:
        raise ValueError(f"strategy = {strategy}: unknown; choose one of {', '.join(STRATEGY_SPECS)}")
    if backend not in BACKENDS:
        raise ValueError(f"backend = {backend}: must be one of {', '.join(BACKENDS)}")
    for name, value in (("P", P), ("L", L), ("H", H), ("T", T), ("m", m)):
        whole(name, value)
    given, spec = dict(options or {}), STRATEGY_SPECS[strategy]
    if faults := predicted_option_faults(spec, given):
        raise ValueError(str(faults[0]))
    chosen = {option.name: Experiment(strategy, options=given).option(option.name) for option in spec.options}
    return _PREDICTORS[strategy](_Setting(strategy, P, L, H, T, m, backend, chosen))


def _single(setting: _Setting) -> Prediction:
    nothing = sent_by_rank((0,), 1, setting.P)
    return Prediction(setting.strategy, nothing, nothing, ())


def _data(setting: _Setting) -> Prediction:
    """By hand and through DDP alike: the gradient in one all-reduce or in several, once or in each of A micro-steps."""
    P, params = setting.P, data_parallel.params(setting.L, setting.H)
    micro_steps = whole("accumulation", setting.options["accumulation"])
    if setting.options["sync_when"] == "once":
        per_gpu, syncs = data_parallel.synced_once_volume(params, P), 1
    else:
        per_gpu, syncs = data_parallel.synced_every_micro_step_volume(params, P, micro_steps), micro_steps
    once = _one_after_the_other([_times(_library_all_reduce(size, P, setting.backend), count, P)
                                 for size, count in _gradient_pieces(setting).items()])
    actual = _times(once, syncs, P)
    return replace(_prediction(setting, spread_evenly(per_gpu, P, P), actual), dtype=str(setting.options["comm_dtype"]))


def _gradient_pieces(setting: _Setting) -> Counter[int]:
    """Elements that an all-reduce carries, and how many of them carry so many: buckets of layers, or everything at once."""
    layer = setting.H**2
    sync = str(setting.options.get("sync", "bucketed"))  # DDP knows nothing else
    if sync == "flat":  # as the buckets below, but at once for a million layers
        return Counter([setting.L * layer])
    bucket_bytes = int(setting.options["bucket_bytes"])
    buckets = schedule.gradient_buckets(setting.L, BYTES_PER_ELEMENT["fp32"] * layer, sync, bucket_bytes)
    return Counter(layer * len(bucket.parameters) for bucket in buckets)


def _loss_reduction(setting: _Setting) -> Prediction:
    """The gradient of one weight."""
    taught = spread_evenly(collectives.ring_all_reduce(1, setting.P), setting.P, setting.P)
    return _prediction(setting, taught, _library_all_reduce(1, setting.P, setting.backend))


def _tensor_megatron(setting: _Setting) -> Prediction:
    """Pairs of layers with the library's collectives or our ring; with sequence parallelism, halves of all-reduces."""
    P, L, H, T = setting.P, setting.L, setting.H, setting.T
    split_tokens = setting.options["activations"] == "sequence_parallel"
    formula = tensor_parallel.sequence_parallel_volume if split_tokens else tensor_parallel.megatron_volume
    taught = spread_evenly(formula(P, L, H, T), P, P)
    active, s = tensor_parallel.active_gpus(P, H), T * H
    if setting.options["collectives"] == "ring":
        halves = [own(s, active) for own in (collectives.own_reduce_scatter_by_rank, collectives.own_all_gather_by_rank)]
        pieces = halves if split_tokens else [collectives.own_all_reduce_by_rank(s, active)]
        combined = _one_after_the_other([_traffic(sent_by_rank(piece, active, active)) for piece in pieces])
    elif split_tokens:
        combined = _one_after_the_other([_library_reduce_scatter(s, active, setting.backend),
                                         _library_all_gather(s, active, setting.backend)])
    else:
        combined = _library_all_reduce(s, active, setting.backend)
    idle = (Cause.IDLE_GPUS,) if active < P else ()
    return _prediction(setting, taught, _with_causes(_times(combined, L, P), idle))


def _tensor(volume_per_gpu: Callable[[int, int, int, int], Fraction], all_reduces_per_layer: int) -> Callable[
        [_Setting], Prediction]:
    """A predictor for a tensor strategy: its formula, and how many all-reduces of T x H each layer runs."""
    def tensor(setting: _Setting) -> Prediction:
        P, L, H, T = setting.P, setting.L, setting.H, setting.T
        taught = spread_evenly(volume_per_gpu(P, L, H, T), P, P)
        active = tensor_parallel.active_gpus(P, H)
        once = _library_all_reduce(T * H, active, setting.backend)
        idle = (Cause.IDLE_GPUS,) if active < P else ()
        step = _Traffic(_repeated(once.volume, all_reduces_per_layer * L, P), idle + once.causes)
        return _prediction(setting, taught, step)
    return tensor


def _pipeline(setting: _Setting) -> Prediction:
    P, L, H, T, m = setting.P, setting.L, setting.H, setting.T, setting.m
    stages = pipeline_parallel.stages(P, L)
    exact = sent_by_rank(pipeline_parallel.sent_by_rank(P, L, H, T, m), stages, P)
    if stages == L:
        return _prediction(setting, exact, _Traffic(exact, ()))
    taught = Volume(None, Fraction(pipeline_parallel.taught_volume(L, H, T, m)), P)
    return _prediction(setting, taught, _Traffic(exact, (Cause.LOCAL_BOUNDARIES,)))


def _collective(setting: _Setting) -> Prediction:
    """One collective, `calls` times."""
    once, calls = _collective_once(setting), whole("calls", setting.options["calls"])
    actual = _times(_Traffic(once.exact, once.causes), calls, setting.P)
    return _prediction(setting, _repeated(once.taught, calls, setting.P), actual)


def _collective_once(setting: _Setting) -> Prediction:
    s = int(setting.options["elements"]) or data_parallel.params(setting.L, setting.H)
    collective, P = str(setting.options["collective"]), setting.P
    taught = _taught_collective(collective, s, P)
    if setting.options["implementation"] == "ring":
        counts = _OWN_BY_RANK[collective](s, P)
        return _prediction(setting, taught, _traffic(sent_by_rank(counts, taught.active_gpus, P)))
    return _prediction(setting, taught, _LIBRARY[collective](s, P, setting.backend))


def _taught_collective(collective: str, s: int, P: int) -> Volume:
    if collective == "broadcast":  # the formula counts copies and leaves the route open
        return Volume(None, Fraction(collectives.broadcast_total(s, P)), P)
    if collective == "send_recv":
        return sent_by_rank(collectives.send_recv_by_rank(s, P), min(P, 2), P)
    per_gpu = {"all_reduce": collectives.ring_all_reduce, "reduce_scatter": collectives.reduce_scatter,
               "all_gather": collectives.all_gather, "all_to_all": collectives.all_to_all}[collective]
    return spread_evenly(per_gpu(s, P), P, P)


def _library_all_reduce(s: int, P: int, backend: str) -> _Traffic:
    if backend == "nccl":
        return _ideal_ring(collectives.ring_all_reduce(s, P), P)
    if gloo.cut_is_known(s, P):
        return _traffic(sent_by_rank(gloo.all_reduce_by_rank(s, P), P, P), Cause.UNEVEN_SEGMENTS)
    return _Traffic(Volume(None, Fraction(collectives.ring_all_reduce_total(s, P)), P), ())


def _library_reduce_scatter(s: int, P: int, backend: str) -> _Traffic:
    padding = _padding(s, P)
    if backend == "nccl":
        return _with_causes(_ideal_ring(Fraction(collectives.reduce_scatter_padded(s, P)), P), padding)
    whole_buffer = _library_all_reduce(collectives.padded_length(s, P), P, backend)
    return _with_causes(whole_buffer, ((Cause.REDUCE_SCATTER_AS_ALL_REDUCE,) if P > 1 else ()) + padding)


def _library_all_gather(s: int, P: int, backend: str) -> _Traffic:
    if backend == "nccl":
        return _with_causes(_ideal_ring(Fraction(collectives.all_gather_padded(s, P)), P), _padding(s, P))
    return _with_causes(_traffic(sent_by_rank(gloo.all_gather_by_rank(s, P), P, P)), _padding(s, P))


def _library_broadcast(s: int, P: int, backend: str) -> _Traffic:
    if backend == "nccl":
        return _Traffic(Volume(None, Fraction(collectives.broadcast_total(s, P)), P), ())
    return _Traffic(sent_by_rank(collectives.tree_broadcast_by_rank(s, P), P, P), ())


def _library_all_to_all(s: int, P: int, backend: str) -> _Traffic:
    return _traffic(sent_by_rank(collectives.all_to_all_by_rank(s, P), P, P))  # direct on both backends


def _library_send_recv(s: int, P: int, backend: str) -> _Traffic:
    return _Traffic(sent_by_rank(collectives.send_recv_by_rank(s, P), min(P, 2), P), ())


def _traffic(volume: Volume, unless: Cause = Cause.UNEVEN_CHUNKS) -> _Traffic:
    """A collective in which all take equal parts, `unless` their buffer is cut unevenly."""
    uneven = volume.by_rank is not None and len(set(volume.by_rank)) > 1
    return _Traffic(volume, (unless,) if uneven else ())


def _ideal_ring(per_gpu: Fraction, P: int) -> _Traffic:
    """A ring's total. How NCCL cuts a buffer over its channels is not known here, so nothing is said of single ranks."""
    return _Traffic(Volume(None, per_gpu * P, P), ())


def _with_causes(traffic: _Traffic, causes: tuple[Cause, ...]) -> _Traffic:
    return _Traffic(traffic.volume, causes + traffic.causes)


def _padding(s: int, P: int) -> tuple[Cause, ...]:
    return (Cause.PADDING,) if s % P else ()


def _times(traffic: _Traffic, times: int, world_size: int) -> _Traffic:
    """The same `times` in a step, on the first ranks of a world."""
    return _Traffic(_repeated(traffic.volume, times, world_size), traffic.causes)


def _one_after_the_other(parts: list[_Traffic]) -> _Traffic:
    """Several collectives of the same ranks in one step."""
    volumes = [part.volume for part in parts]
    known = [volume.by_rank for volume in volumes if volume.by_rank is not None]
    by_rank = tuple(sum(of_rank, Fraction(0)) for of_rank in zip(*known, strict=True)) if len(known) == len(parts) else None
    total = sum((volume.total for volume in volumes), Fraction(0))
    causes = tuple(dict.fromkeys(cause for part in parts for cause in part.causes))
    if by_rank is not None and len(set(by_rank)) == 1:  # unevenness that evens out over the parts is none
        causes = tuple(cause for cause in causes if cause not in UNEVEN)
    return _Traffic(Volume(by_rank, total, volumes[0].active_gpus), causes)


def _repeated(volume: Volume, times: int, world_size: int) -> Volume:
    """`times` such collectives on the first ranks of a world."""
    if volume.by_rank is None:
        return Volume(None, times * volume.total, volume.active_gpus)
    idle = (Fraction(0),) * (world_size - len(volume.by_rank))
    return Volume(tuple(times * count for count in volume.by_rank) + idle, times * volume.total, volume.active_gpus)


def _prediction(setting: _Setting, taught: Volume, actual: _Traffic) -> Prediction:
    return Prediction(setting.strategy, taught, actual.volume, actual.causes)


_OWN_BY_RANK: dict[str, Callable[[int, int], tuple[int, ...]]] = {
    "all_reduce": collectives.own_all_reduce_by_rank,
    "reduce_scatter": collectives.own_reduce_scatter_by_rank,
    "all_gather": collectives.own_all_gather_by_rank,
    "broadcast": collectives.tree_broadcast_by_rank,
    "all_to_all": collectives.all_to_all_by_rank,
    "send_recv": collectives.send_recv_by_rank,
}
_LIBRARY: dict[str, Callable[[int, int, str], _Traffic]] = {
    "all_reduce": _library_all_reduce,
    "reduce_scatter": _library_reduce_scatter,
    "all_gather": _library_all_gather,
    "broadcast": _library_broadcast,
    "all_to_all": _library_all_to_all,
    "send_recv": _library_send_recv,
}
_PREDICTORS: dict[str, Callable[[_Setting], Prediction]] = {
    "single": _single,
    "data_parallel": _data,
    "ddp": _data,
    "loss_reduction": _loss_reduction,
    "tensor_parallel": _tensor(tensor_parallel.taught_volume, all_reduces_per_layer=2),
    "tensor_megatron": _tensor_megatron,
    "megatron_core": _tensor(tensor_parallel.megatron_volume, all_reduces_per_layer=1),
    "tensor_dtensor": _tensor(tensor_parallel.megatron_volume, all_reduces_per_layer=1),
    "pipeline_gpipe": _pipeline,
    "pipeline_1f1b": _pipeline,
    "pipeline_torch": _pipeline,
    "ring_all_reduce": _collective,
}
