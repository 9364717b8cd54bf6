"""What a rank runs, under the launch host and under torchrun alike: join, train, measure, report.

    torchrun --nproc-per-node 4 --local-addr 127.0.0.1 -m kernels.train --strategy data_parallel -P 4 -L 2 -H 4
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import torch
import torch.distributed as dist

from kernels import backend as backends
from kernels.comm import Calls, Comm
from kernels.mesh import Mesh
from kernels.meters import memory, wire
from kernels.meters.timeline import Timeline
from kernels.spec import (
    BACKENDS,
    BYTES_PER_ELEMENT,
    STRATEGY_SPECS,
    Environment,
    Experiment,
    ExperimentReport,
    Interval,
    MemoryReport,
    RunReport,
    RunSpec,
    add_experiment_arguments,
    experiment_from_arguments,
    run_faults,
    spec_from_json,
    to_json,
)
from kernels.strategies import STRATEGIES
from kernels.strategies.base import Context, Measures, Strategy, Trained, largest

Events = Callable[[dict[str, Any]], None]

TORCH_DTYPES = {"fp32": torch.float32, "fp64": torch.float64}
# Largest difference of a weight from the single process's, after some ten steps; weights are of the order of 1.
WEIGHTS_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-12}
# Gradients that travel in bf16 keep 8 significant bits: what may be off is a part of the way that the weights have gone, which
# is 1e-6 to 5e-3. A 178th was seen at most (168 settings, P = 1 to 8), and beside it what fp32 rounds in a dozen steps, 7e-7.
BF16_PART_OF_WAY = 1 / 64
FP32_ROUNDING = 2e-6


@dataclass
class World:
    """This rank's place in the launch, and what all experiments of the launch share."""

    mesh: Mesh
    backend: str
    store: dist.Store
    meter: wire.WireMeter | None
    meter_note: str
    events: Events
    groups: dict[tuple[int, ...], dist.ProcessGroup | None] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str, **details: Any) -> Iterator[None]:
        """Tell whoever watches what happens now, and add up how long it took."""
        self.events({"event": "phase", "phase": name, "rank": self.mesh.rank, **details})
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def new_comm(self, ranks: Sequence[int] | None, calls: Calls) -> Comm | None:
        """The group of these ranks, made once a launch. Every rank must ask, members or not."""
        members = tuple(range(self.mesh.world_size)) if ranks is None else tuple(ranks)
        if members not in self.groups:
            whole = len(members) == self.mesh.world_size
            group = dist.group.WORLD if whole else dist.new_group(list(members))
            self.groups[members] = group if self.mesh.rank in members else None
        group = self.groups[members]
        return None if group is None else Comm(group, calls)

    def gather(self, key: str, own: Any) -> list[Any] | None:
        """Every rank's value, on rank 0; through the store, so that no socket between ranks sees it."""
        self.store.set(f"report/{key}/{self.mesh.rank}", json.dumps(own))
        if self.mesh.rank != 0:
            return None
        return [json.loads(self.store.get(f"report/{key}/{rank}")) for rank in range(self.mesh.world_size)]


@dataclass(frozen=True)
class Variant:
    """One experiment in one dtype: the one it computes in, and the one it sends in (the same, unless it compresses)."""

    experiment: Experiment
    computes_in: str
    sends_in: str


def variants_of(experiment: Experiment, purpose: str) -> tuple[Variant, ...]:
    """To count bytes, two variants that send as many messages of as many elements, the second in wider ones.

    What differs between them on the wire is payload, for the headers of equal numbers of messages cancel. So would anything
    else that is as long in both, such as integers; no strategy sends any in a measured step, and ExperimentReport tells where
    one did (pairs_beyond_headers). To take the time, the first is enough.
    """
    if purpose == "timing":
        return variants_of(experiment, "counting")[:1]
    if experiment.options.get("comm_dtype") == "bf16":
        uncompressed = replace(experiment, options={**experiment.options, "comm_dtype": "fp32"})
        return Variant(experiment, "fp32", "bf16"), Variant(uncompressed, "fp32", "fp32")
    return Variant(experiment, "fp32", "fp32"), Variant(experiment, "fp64", "fp64")


@dataclass(frozen=True)
class Pass:
    """One variant as this rank saw it. The matrix is the same on every rank."""

    windows: wire.Windows | None
    calls: Calls | None
    memory: MemoryReport
    timeline: list[Interval]
    step_seconds: list[float]
    weights_difference: float
    weights_tolerance: float
    values: dict[str, float]


def run_experiments(spec: RunSpec, events: Events) -> RunReport | None:
    """Measure every experiment of the spec. Rank 0 returns the report, the others None.

    Reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT as torch's elastic agent sets them.
    """
    began, started_at = time.monotonic(), datetime.now(UTC)
    world = _join(spec, events)
    try:
        joined = time.monotonic() - began
        reports = [_measure(world, spec, index) for index in range(len(spec.experiments))]
        _leave_together(world)
    finally:
        dist.destroy_process_group()
    if world.mesh.rank != 0:
        return None
    return RunReport(
        P=spec.P,
        experiments=tuple(report for report in reports if report is not None),
        environment=_environment(world, started_at),
        timings={"joining": joined, **{name: round(value, 6) for name, value in world.seconds.items()},
                 "total": time.monotonic() - began},
    )


def _join(spec: RunSpec, events: Events) -> World:
    inherited = wire.socket_inodes()
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    events({"event": "phase", "phase": "joining", "rank": rank})
    # Longer than the run may take: in a hang, the ranks that wait for the stuck one must not be the first to fail.
    timeout = timedelta(seconds=spec.time_limit_seconds + 30)
    store, rank, world_size = next(dist.rendezvous("env://", timeout=timeout))
    if world_size != spec.P:
        raise ValueError(f"the spec asks for P = {spec.P}, but {world_size} ranks were launched")
    backend = backends.choose_backend(world_size, backends.count_gpus(os.environ), wanted=spec.backend)
    os.environ.update(backends.backend_environment(backend, spec.purpose))
    device = backends.device_for(backend, local_rank)
    backends.join(backend, device, dist.PrefixStore("group", store), rank, world_size, timeout)
    own_store = dist.PrefixStore("worldsize", store)
    meter: wire.WireMeter | None = None
    note = ""
    if spec.purpose == "timing":
        note = "a timing run leaves the backend alone and counts calls, not sockets"
    else:
        try:
            meter = wire.WireMeter(own_store, rank, world_size, inherited, int(os.environ["MASTER_PORT"]))
        except wire.WireUnreadable as unreadable:
            note = f"{unreadable}: bytes are those handed over in each call, not those on the wire"
    return World(Mesh(rank, world_size, device), backend, own_store, meter, note, events)


def _measure(world: World, spec: RunSpec, index: int) -> ExperimentReport | None:
    variants = variants_of(spec.experiments[index], spec.purpose)
    passes = [_measure_variant(world, spec, index, variant) for variant in variants]
    narrow = passes[0]
    calls = narrow.calls
    mine = {
        "memory": asdict(narrow.memory),
        "timeline": [asdict(interval) for interval in narrow.timeline],
        "step_seconds": narrow.step_seconds,
        "calls": None if calls is None else {"counts": calls.counts, "payload_bytes": calls.payload_bytes},
        "differences": [one.weights_difference for one in passes],
        "values": narrow.values,
    }
    ranks = world.gather(f"experiment/{index}", mine)
    return None if ranks is None else _assemble(world, variants, ranks, passes)


def _assemble(world: World, variants: Sequence[Variant], ranks: list[dict[str, Any]],
              passes: Sequence[Pass]) -> ExperimentReport:
    """One report out of every rank's share and what is the same on every rank: windows and tolerances."""
    calls = [rank["calls"] for rank in ranks]
    readings = [one.windows for one in passes if one.windows is not None]
    weakest = min(readings, key=lambda one: (one.agreeing, -one.readings), default=None)
    counted = None not in calls
    slowest = [max(seconds) for seconds in zip(*(rank["step_seconds"] for rank in ranks), strict=True)]
    difference, tolerance = _worst(variants, [rank["differences"] for rank in ranks], [one.weights_tolerance for one in passes])
    origin = min((interval["start_seconds"] for rank in ranks for interval in rank["timeline"]), default=0.0)
    return ExperimentReport(
        experiment=variants[0].experiment,
        dtype=variants[0].sends_in,
        settled=bool(readings) and all(one.settled for one in readings),
        repetitions=0 if weakest is None else weakest.readings,
        agreeing=0 if weakest is None else weakest.agreeing,
        payload_matrix=_payload(variants, [one.matrix for one in readings]),
        wire_matrix=readings[0].matrix if readings else None,
        calls_payload_bytes_by_rank=tuple(call["payload_bytes"] for call in calls) if counted else None,
        calls_by_rank=tuple(call["counts"] for call in calls) if counted else None,
        memory_by_rank=tuple(MemoryReport(**rank["memory"]) for rank in ranks),
        timeline=tuple(
            Interval(interval["rank"], interval["name"], interval["start_seconds"] - origin, interval["end_seconds"] - origin)
            for rank in ranks for interval in rank["timeline"]
        ),
        step_seconds=statistics.median(slowest) if slowest else 0.0,
        weights_max_difference=difference,
        weights_tolerance=tolerance,
        note=note_on(world.meter_note, world.mesh.device),
        values=ranks[0]["values"],
    )


def note_on(meter_note: str, device: torch.device) -> str:
    """Why something is missing in a report; empty where nothing is."""
    no_timeline = "" if device.type == "cpu" else "there is no timeline, for on a GPU it would show when work was asked for"
    return "; ".join(filter(None, (meter_note, no_timeline)))


def _payload(variants: Sequence[Variant], wires: list[wire.Matrix]) -> wire.Matrix | None:
    """payload(b) = (wire(c) - wire(b)) * b/(c - b) for element sizes b < c and equal numbers of messages."""
    if not wires:
        return None
    size, wider_size = (BYTES_PER_ELEMENT[variant.sends_in] for variant in variants)
    difference = wire.subtract(wires[1], wires[0])
    return tuple(tuple(value * size // (wider_size - size) for value in row) for row in difference)


def weights_tolerance(sends_in: str, strategy: Strategy) -> float:
    """What a weight may differ from the single process's, where what is sent has this type."""
    if sends_in != "bf16":
        return WEIGHTS_TOLERANCE[sends_in]
    way = strategy.way() if isinstance(strategy, Trained) else 0.0
    return BF16_PART_OF_WAY * way + FP32_ROUNDING


def _worst(variants: Sequence[Variant], differences: list[list[float]], tolerances: Sequence[float]) -> tuple[float, float]:
    """The largest difference from the single process over all ranks, by rank and variant given, and what it may be.

    That of the widest variant, which says most about the arithmetic; of the compressed one, where gradients are compressed; of
    any other one that is beyond what it may be.
    """
    by_variant = zip(*differences, strict=True)
    judged = [(largest(of_ranks), tolerance) for of_ranks, tolerance in zip(by_variant, tolerances, strict=True)]
    if variants[0].sends_in == variants[0].computes_in:
        judged.reverse()
    return next((one for one in judged if not one[0] <= one[1]), judged[0])  # NaN is beyond every tolerance


def _measure_variant(world: World, spec: RunSpec, index: int, variant: Variant) -> Pass:
    experiment = variant.experiment
    details = {"experiment": index, "strategy": experiment.strategy, "dtype": variant.sends_in}
    calls, timeline = Calls(), Timeline(world.mesh.rank)
    with world.phase("warming up", **details):
        context = Context(world.mesh, experiment, TORCH_DTYPES[variant.computes_in], spec.seed, timeline,
                          lambda ranks: world.new_comm(ranks, calls))
        strategy = STRATEGIES[experiment.strategy](context)
        for _ in range(spec.warmup_steps - 1):
            strategy.step()
        saved = memory.saved_for_backward_bytes(strategy.step, strategy.parameters())
        backends.finish_work(world.mesh.device)
    step_seconds: list[float] = []

    def step() -> None:
        calls.clear()
        timeline.clear()
        step_seconds.append(timed_step(strategy, world.mesh.device))

    windows = _measure_steps(world, spec, step, details)
    return Pass(
        windows=windows,
        calls=calls if STRATEGY_SPECS[experiment.strategy].library is None else None,
        memory=memory.memory_report(strategy.parameters(), strategy.optimizer(), saved),
        timeline=timeline.intervals() if world.mesh.device.type == "cpu" else [],
        step_seconds=step_seconds,
        weights_difference=strategy.check(),
        weights_tolerance=weights_tolerance(variant.sends_in, strategy),
        values=strategy.values() if isinstance(strategy, Measures) else {},
    )


def timed_step(strategy: Strategy, device: torch.device) -> float:
    """Seconds of one step, from an idle device to an idle device: before that no window may close."""
    backends.finish_work(device)
    began = time.monotonic()
    strategy.step()
    backends.finish_work(device)
    return time.monotonic() - began


def _measure_steps(world: World, spec: RunSpec, step: Callable[[], None], details: dict[str, Any]) -> wire.Windows | None:
    def tell(repetition: int) -> None:
        world.events({"event": "phase", "phase": "measuring", "rank": world.mesh.rank, "repetition": repetition,
                      "repetitions": spec.repetitions, **details})

    with world.phase("measuring", **details):
        if world.meter is not None:
            return wire.measure_windows(world.meter, step, spec.repetitions, tell)
        for repetition in range(spec.repetitions):
            tell(repetition + 1)
            step()
        return None


def _leave_together(world: World) -> None:
    """A barrier through the store: nobody closes a connection while another rank still measures."""
    keys = [f"leaving/{rank}" for rank in range(world.mesh.world_size)]
    world.store.set(keys[world.mesh.rank], "")
    world.store.wait(keys)


def _environment(world: World, started_at: datetime) -> Environment:
    return Environment(
        torch=torch.__version__,
        python=platform.python_version(),
        backend=world.backend,
        transport=backends.transport(world.backend),
        launcher="launch host" if "WORLDSIZE_LAUNCH_HOST" in os.environ else "torchrun",
        platform=f"{platform.system()} {platform.machine()}",
        cpu_count=os.cpu_count() or 1,
        gpu_count=backends.count_gpus(os.environ),
        started_at=started_at.isoformat(timespec="seconds"),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """One rank under torchrun. Rank 0 prints the report as JSON on standard output."""
    parser = argparse.ArgumentParser(prog="kernels.train", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--strategy", choices=sorted(STRATEGIES), help="one experiment at these settings")
    parser.add_argument("--spec", help="a whole RunSpec as JSON instead: several experiments in one launch")
    parser.add_argument("--backend", choices=BACKENDS, help="auto: NCCL where every rank gets a GPU of its own, else gloo")
    add_experiment_arguments(parser)
    given = parser.parse_args(arguments)
    if (given.strategy is None) == (given.spec is None):
        parser.error("give either --strategy or --spec")
    if given.backend is not None and given.spec is not None:
        parser.error('--backend goes with --strategy; a --spec names it as "backend"')
    try:
        spec = _spec_asked_for(given)
    except (KeyError, TypeError, ValueError) as error:
        parser.error(f"--spec is no RunSpec as JSON: {error}")
    faults = run_faults(spec)
    if faults:
        parser.error("; ".join(str(fault) for fault in faults))
    if os.environ.get("WORLD_SIZE") != str(spec.P):
        parser.error(f"-P {spec.P} needs as many ranks: start with torchrun --nproc-per-node {spec.P} -m kernels.train ...")
    report = run_experiments(spec, lambda event: None)
    if report is not None:
        json.dump(to_json(report), sys.stdout)
        print()
    return 0


def _spec_asked_for(given: argparse.Namespace) -> RunSpec:
    if given.spec is not None:
        return spec_from_json(json.loads(given.spec))
    experiment = experiment_from_arguments(given.strategy, given)
    return RunSpec(P=given.P, experiments=(experiment,), backend=given.backend or BACKENDS[0])


if __name__ == "__main__":
    sys.exit(main())
