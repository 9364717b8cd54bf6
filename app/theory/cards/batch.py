"""Cards of app.theory.batch and app.theory.flops."""

from __future__ import annotations

from app.theory import batch, flops
from app.theory.cards.card import NO_SCOPE, card
from app.theory.cards.sources import BLOOM, DDP, FSDP, MEGATRON_SCALING, at, derived

_MICRO_BATCHES = at(MEGATRON_SCALING, "section 3.1")
_EQUAL = "Every replica and every micro-step has the same number of sequences."

CARDS = (
    card(
        batch.global_batch,
        "Global batch",
        r"G = b \, A \, d",
        unit="sequences",
        scope=NO_SCOPE,
        assumes=(_EQUAL,),
        breaks="GPUs of one tensor, context or pipeline group work on the same sequences: they do not multiply the batch.",
        sources=(_MICRO_BATCHES,),
    ),
    card(
        batch.replicas,
        "Replicas of the model",
        r"d = \frac{P}{t \, c \, p}",
        unit="replicas",
        scope=NO_SCOPE,
        assumes=("The groups tile the GPUs: t c p divides P.",),
        breaks="A remainder leaves GPUs that belong to no replica; launchers refuse it.",
        sources=(_MICRO_BATCHES,),
    ),
    card(
        batch.global_batch_of_world,
        "Global batch of a cluster",
        r"G = b \, A \, \frac{P}{t \, c \, p}",
        unit="sequences",
        scope=NO_SCOPE,
        assumes=(_EQUAL, "t c p divides P."),
        breaks="Counting all P GPUs as replicas makes the batch t c p times too large.",
        sources=(_MICRO_BATCHES,),
    ),
    card(
        batch.num_micro_batches,
        "Micro-batches of an optimizer step",
        r"m = \frac{G}{b \, d}",
        unit="micro-batches",
        scope=NO_SCOPE,
        assumes=("b d divides G.", "Without a pipeline these are the accumulation steps A."),
        breaks="7 replicas cannot share 256 sequences evenly: change the batch or the replicas.",
        sources=(_MICRO_BATCHES,),
    ),
    card(
        batch.micro_batch_weight,
        "Weight of a micro-batch's mean gradient",
        r"\frac{1}{A \, d}",
        unit="",
        scope=NO_SCOPE,
        assumes=("Each micro-batch's loss is a mean, over equally many tokens.",),
        breaks="With 10 tokens in one micro-batch and 100 in the other, a token of the first counts ten times as much.",
        sources=(derived(at(DDP, "section 3.2.4")),),
    ),
    card(
        batch.tokens_per_step,
        "Tokens of an optimizer step",
        r"G \, \ell",
        unit="tokens",
        scope=NO_SCOPE,
        assumes=("Sequences are packed to full length.",),
        breaks="Padding tokens are counted here and teach nothing.",
        sources=(derived(_MICRO_BATCHES),),
    ),
    card(
        batch.sequences_of_tokens,
        "Sequences in a batch of tokens",
        r"\frac{N_{\text{tokens}}}{\ell}",
        unit="sequences",
        scope=NO_SCOPE,
        assumes=("Sequences are packed to full length.",),
        breaks="A fraction says that the printed token count was rounded.",
        sources=(derived(_MICRO_BATCHES),),
    ),
    card(
        batch.rampup_increments,
        "Increments of a batch ramp",
        r"k = \frac{G - G_0}{\Delta G}",
        unit="times",
        scope=NO_SCOPE,
        assumes=("The increment divides the way from the first batch to the last.",),
        breaks="A remainder means that the ramp never meets the batch you asked for.",
        sources=(BLOOM,),
    ),
    card(
        batch.rampup_samples_per_increment,
        "Samples at each size of a batch ramp",
        r"\left\lfloor \frac{N_{\text{samples}}}{k} \right\rfloor",
        unit="sequences",
        scope=NO_SCOPE,
        assumes=("Every size lasts for equally many samples.",),
        breaks="Rounding down makes the ramp up to k - 1 samples shorter than asked for.",
        sources=(BLOOM,),
    ),
    card(
        batch.rampup_steps,
        "Optimizer steps at one size of a batch ramp",
        r"\left\lfloor \frac{N_{\text{samples}}}{G} \right\rfloor",
        unit="steps",
        scope=NO_SCOPE,
        assumes=("The batch stays the same for these samples.",),
        breaks="The samples of the last, incomplete step go to the next size.",
        sources=(BLOOM,),
    ),
    card(
        flops.utilisation,
        "Share of peak",
        r"\frac{\Phi}{\Phi_{\text{peak}}}",
        unit="",
        scope=NO_SCOPE,
        assumes=("Both rates count the same operations, at the same dtype.",),
        breaks="Count recomputed work and it is hardware utilisation (HFU), without it model utilisation (MFU).",
        sources=(at(FSDP, "section 5.4"),),
    ),
)
