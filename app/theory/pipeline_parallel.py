"""Pipeline parallel: layers in stages on neighbouring GPUs, which hand activations forward and gradients back.

Per micro-batch each boundary carries T x H elements in each direction. Traffic is the same for every schedule.
"""

from __future__ import annotations

from app.theory.checks import whole


def stages(P: int, L: int) -> int:
    """Pipeline stages: min(P, L). A stage has at least one layer."""
    return min(whole("P", P), whole("L", L))


def idle_gpus(P: int, L: int) -> int:
    """GPUs without a layer: max(P - L, 0)."""
    return whole("P", P) - stages(P, L)


def boundary_volume(H: int, T: int, m: int) -> int:
    """Elements that cross one boundary in one direction in a step: m T H."""
    return whole("m", m) * whole("T", T) * whole("H", H)


def taught_volume(L: int, H: int, T: int, m: int) -> int:
    """Elements all GPUs together send in one step, as the lesson states it.

        sent = 2 m T H (L - 1)

    One layer a GPU, so L - 1 boundaries, each crossed forward and backward. Right where P >= L.
    """
    return 2 * boundary_volume(H, T, m) * (whole("L", L) - 1)


def exact_volume(P: int, L: int, H: int, T: int, m: int) -> int:
    """Elements all GPUs together send in one step.

        sent = 2 m T H (S - 1)          S = min(P, L)

    Only the S - 1 boundaries between stages cross GPUs; 0 at P = 1 or L = 1.
    """
    return 2 * boundary_volume(H, T, m) * (stages(P, L) - 1)


def busiest_gpu_volume(P: int, L: int, H: int, T: int, m: int) -> int:
    """Elements the busiest GPU sends in one step: 2 m T H for an inner stage, m T H with two stages, 0 with one."""
    return min(stages(P, L) - 1, 2) * boundary_volume(H, T, m)


def sent_by_rank(P: int, L: int, H: int, T: int, m: int) -> tuple[int, ...]:
    """Elements each rank sends in one step: activations unless it is the last stage, gradients unless the first."""
    one_way = boundary_volume(H, T, m)
    last = stages(P, L) - 1
    return tuple(one_way * ((rank < last) + (0 < rank <= last)) for rank in range(P))


def interleaved_volume(P: int, H: int, T: int, m: int, v: int) -> int:
    """Elements all GPUs together send in one step with v chunks of layers on each GPU.

        sent = 2 m T H (P v - 1)

    Chunks go round the GPUs in turn, so every boundary between chunks crosses. Needs L >= P v. 0 at P = 1.
    Source: Narayanan et al. 2021, arXiv 2104.04473, section 2.2.
    """
    one_way = boundary_volume(H, T, m)
    boundaries = whole("P", P) * whole("v", v) - 1
    return 2 * one_way * boundaries if P > 1 else 0
