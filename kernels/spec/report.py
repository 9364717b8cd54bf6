"""What a run brings back, and specs and reports as JSON, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kernels.spec.experiment import Experiment, RunSpec

# By backend, where it is known: what opens every message and every word that one is ready. gloo's is a struct of six 8-byte
# numbers (Op::preamble in gloo/transport/tcp/pair.h).
HEADER_BYTES = {"gloo": 48}


@dataclass(frozen=True)
class Environment:
    """Where a run took place: what a reader needs to repeat it. Versions as the packages print them."""

    torch: str
    python: str
    backend: str  # gloo or nccl
    transport: str  # "loopback TCP"; for NCCL what the counting run forced
    launcher: str  # "launch host" or "torchrun"
    platform: str
    cpu_count: int
    gpu_count: int
    started_at: str  # ISO 8601, UTC


@dataclass(frozen=True)
class Interval:
    """Something a rank did in the last measured step, in seconds since the first event of any rank (monotonic clock)."""

    rank: int
    name: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class MemoryReport:
    """Bytes one rank holds: distinct storages counted once; saved: tensors kept for backward at their peak sum."""

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    saved_for_backward_bytes: int


@dataclass(frozen=True)
class ExperimentReport:
    """What was measured. Lists are by rank; a matrix has senders as rows, receivers as columns. All bytes, at `dtype`.

    Payload comes from the socket counters of two runs, wire(fp64) - wire(fp32), never from the calls (where gradients travel
    in bf16, from wire(fp32) - wire(bf16), and `dtype` is bf16). Where sockets
    cannot be read it is None, `calls_payload_bytes_by_rank` stands in, and `note` says why.
    """

    experiment: Experiment
    dtype: str
    settled: bool  # every window closed: what one end sent, the other had received
    repetitions: int  # readings taken, of the run (fp32 or fp64) that agreed least
    agreeing: int  # how many of them are equal to the most frequent one: all, unless steps sent different things
    payload_matrix: tuple[tuple[int, ...], ...] | None
    wire_matrix: tuple[tuple[int, ...], ...] | None
    calls_payload_bytes_by_rank: tuple[int, ...] | None  # None: the library bypasses kernels.comm
    calls_by_rank: tuple[Mapping[str, int], ...] | None
    memory_by_rank: tuple[MemoryReport, ...]
    timeline: tuple[Interval, ...]
    step_seconds: float  # median over the repetitions of the slowest rank's step
    weights_max_difference: float  # largest |weight - weight of `single`| over all ranks, after the same steps
    weights_tolerance: float
    note: str = ""
    values: Mapping[str, float] = field(default_factory=dict)  # what else a strategy measured, by name, as rank 0 saw it

    @property
    def payload_bytes_by_rank(self) -> tuple[int, ...] | None:
        """Bytes of payload each rank sent."""
        return None if self.payload_matrix is None else tuple(sum(row) for row in self.payload_matrix)

    @property
    def wire_bytes_by_rank(self) -> tuple[int, ...] | None:
        """Bytes each rank sent, protocol headers included, resends not."""
        return None if self.wire_matrix is None else tuple(sum(row) for row in self.wire_matrix)

    def pairs_beyond_headers(self, backend: str) -> tuple[tuple[int, int], ...]:
        """(sender, receiver) between which the wire carried something besides payload and whole headers.

        Whatever is as long in both runs, such as an integer tensor, cancels in the payload and is left here, unless its length
        is by chance that of so many headers. Empty where the backend's headers are not known.
        """
        header = HEADER_BYTES.get(backend)
        if header is None or self.payload_matrix is None or self.wire_matrix is None:
            return ()
        both = zip(self.wire_matrix, self.payload_matrix, strict=True)
        return tuple(
            (sender, receiver)
            for sender, (wire, payload) in enumerate(both)
            for receiver, (sent, wanted) in enumerate(zip(wire, payload, strict=True)) if (sent - wanted) % header
        )


@dataclass(frozen=True)
class RunReport:
    """All experiments of one launch, in the order asked for. `timings` in seconds: join, then one entry a phase."""

    P: int
    experiments: tuple[ExperimentReport, ...]
    environment: Environment
    timings: Mapping[str, float]


def to_json(value: RunSpec | RunReport | Experiment) -> dict[str, Any]:
    """Plain dicts and lists, ready for json.dumps."""
    return asdict(value)


def experiment_from_json(data: Mapping[str, Any]) -> Experiment:
    """Raises TypeError on a key that an experiment does not have."""
    return Experiment(**data)


def spec_from_json(data: Mapping[str, Any]) -> RunSpec:
    """Raises TypeError on a key that a spec does not have, KeyError where P or experiments is missing."""
    given = dict(data)
    experiments = tuple(experiment_from_json(item) for item in given.pop("experiments"))
    return RunSpec(P=given.pop("P"), experiments=experiments, **given)


def report_from_json(data: Mapping[str, Any]) -> RunReport:
    """The inverse of `to_json` for a report."""
    return RunReport(
        P=data["P"],
        experiments=tuple(_experiment_report(item) for item in data["experiments"]),
        environment=Environment(**data["environment"]),
        timings=dict(data["timings"]),
    )


def _experiment_report(data: Mapping[str, Any]) -> ExperimentReport:
    given = dict(data)
    given["experiment"] = experiment_from_json(given["experiment"])
    for name in ("payload_matrix", "wire_matrix"):
        given[name] = None if given[name] is None else tuple(tuple(row) for row in given[name])
    for name in ("calls_payload_bytes_by_rank", "calls_by_rank"):
        given[name] = None if given[name] is None else tuple(given[name])
    given["memory_by_rank"] = tuple(MemoryReport(**item) for item in given["memory_by_rank"])
    given["timeline"] = tuple(Interval(**item) for item in given["timeline"])
    return ExperimentReport(**given)
