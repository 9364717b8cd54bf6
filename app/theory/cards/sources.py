"""Papers and project files that the cards cite. A card adds the section with `at`."""

from __future__ import annotations

from dataclasses import replace

from app.theory.formula import Source

RING = Source(
    "Patarasuk & Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2)",
    "https://doi.org/10.1016/j.jpdc.2008.09.002",
)
ALPHA_BETA = Source(
    "Thakur, Rabenseifner & Gropp 2005, Optimization of Collective Communication Operations in MPICH",
    "https://doi.org/10.1177/1094342005051521",
)
NCCL_TESTS = Source(
    "NVIDIA nccl-tests, doc/PERFORMANCE.md, Bandwidth", "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)
NCCL_TUNING = Source("NVIDIA nccl, src/graph/tuning.cc", "https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc")
NVLINK = Source("NVIDIA, NVLink and NVSwitch, specifications", "https://www.nvidia.com/en-us/data-center/nvlink/")
DDP = Source("Li et al. 2020, PyTorch Distributed", "https://arxiv.org/abs/2006.15704")
DDP_NO_SYNC = Source(
    "PyTorch documentation, DistributedDataParallel.no_sync",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)
DDP_DOCS = Source(
    "PyTorch documentation, DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)
DDP_BUCKETS = Source(
    "pytorch issue 48880, bucket_cap_mb not honored by AllReduce ops", "https://github.com/pytorch/pytorch/issues/48880"
)
RESNET = Source("He et al. 2015, Deep Residual Learning for Image Recognition", "https://arxiv.org/abs/1512.03385")
TOKEN_WEIGHTS = Source("Hugging Face 2024, Fixing Gradient Accumulation", "https://huggingface.co/blog/gradient_accumulation")
LINEAR = Source("PyTorch documentation, torch.nn.Linear", "https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html")
FULLY_SHARD = Source(
    "PyTorch documentation, fully_shard (FSDP2)", "https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html"
)
DTYPES = Source("PyTorch documentation, torch.dtype", "https://docs.pytorch.org/docs/stable/tensor_attributes.html")
SI_PREFIXES = Source("NIST, Prefixes for binary multiples", "https://physics.nist.gov/cuu/Units/binary.html")
MEGATRON = Source("Shoeybi et al. 2019, Megatron-LM", "https://arxiv.org/abs/1909.08053")
MEGATRON_SCALING = Source(
    "Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters", "https://arxiv.org/abs/2104.04473"
)
SEQUENCE_PARALLEL = Source(
    "Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models", "https://arxiv.org/abs/2205.05198"
)
GPIPE = Source("Huang et al. 2019, GPipe", "https://arxiv.org/abs/1811.06965")
ZERO = Source("Rajbhandari et al. 2020, ZeRO", "https://arxiv.org/abs/1910.02054")
FSDP = Source("Zhao et al. 2023, PyTorch FSDP", "https://arxiv.org/abs/2304.11277")
BLOOM = Source(
    "BigScience, tr11-176B-ml/README.md, batch-size ramp-up",
    "https://github.com/bigscience-workshop/bigscience/blob/master/train/tr11-176B-ml/README.md",
)


def at(source: Source, place: str) -> Source:
    """The same source at a section, figure or equation."""
    return replace(source, text=f"{source.text}, {place}")


def derived(source: Source) -> Source:
    """For a formula that follows from a source and is not printed there."""
    return replace(source, text=f"Derived from {source.text}")
