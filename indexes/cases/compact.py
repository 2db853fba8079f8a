"""What is no longer used leaves the disk: texts and words at once, vectors when enough have gathered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..generation import Generation, GenerationWriter
from .tables import Tables, TextTable

REFIT_SHARE = 0.2
"""Share of changed texts above which vectors, a graph and its whitening are made anew."""

MOST_SEGMENTS = 32
"""Files of payloads or vectors that additions may leave before they are joined."""

_FEW_VALUES = 1 << 25


def write_payloads(
    tables: Tables, segments: int, generation: Generation | None, writer: GenerationWriter
) -> int:
    """Link the payloads of the current generation, or write those in use into one file.

    Nothing that a deleted or replaced record said is carried over.

    Args:
        tables: of the next generation, whose new payloads are in the writer's file number ``segments``.
        segments: how many files the current generation has.
        generation: the current one.
        writer: of the next one.

    Returns:
        how many files there are.
    """
    last = f"payload.{segments}.bin"
    places = tables.columns.places
    held = sum(len(segment) for segment in tables.payloads) + writer.files[last].size
    if segments < MOST_SEGMENTS and held == int(places[:, 2].sum()):
        for i in range(segments):
            if generation is not None:
                writer.link(generation, f"payload.{i}.bin")
        return segments + 1
    blocks = [*tables.payloads, np.fromfile(writer.folder / last, np.uint8)]
    writer.drop(last)
    with writer.place("payload.0.bin").open("wb") as handle:
        for segment, start, size in places.tolist():
            handle.write(blocks[segment][start : start + size].tobytes())
    writer.seal("payload.0.bin")
    sizes = places[:, 2]
    starts = np.cumsum(sizes) - sizes
    tables.columns.places = np.stack([np.zeros_like(sizes), starts, sizes], axis=1)
    return 1


def forget_words(tables: Tables) -> None:
    """Drop terms that no record uses any more, and renumber the others in their order."""
    used = np.zeros(len(tables.vocabulary), bool)
    for view in tables.views.values():
        used[view.counts.terms] = True
    if used.all():
        return
    number = (np.cumsum(used) - 1).astype(np.int32)
    terms = [term for term, kept in zip(tables.vocabulary, used.tolist(), strict=True) if kept]
    tables.vocabulary = {term: i for i, term in enumerate(terms)}
    for view in tables.views.values():
        view.counts = replace(view.counts, terms=number[view.counts.terms])


def write_texts(
    tables: Tables, segments: int, generation: Generation | None, writer: GenerationWriter
) -> None:
    """Keep the vectors' segments as they are, or rewrite those still in use where many are not."""
    texts = tables.texts
    used = np.zeros(len(texts.keys), bool)
    for view in tables.views.values():
        used[view.texts[view.slots[view.slots >= 0]]] = True
    unused = len(used) - int(used.sum())
    few = len(used) * texts.segments[-1].shape[1] <= _FEW_VALUES
    if segments == 0 and not unused:
        pass
    elif (few and segments) or unused > REFIT_SHARE * len(used) or segments >= MOST_SEGMENTS:
        live = np.flatnonzero(used).astype(np.int32)
        vectors = texts.vectors(live)
        number = np.full(len(used), -1, np.int32)
        number[live] = np.arange(len(live), dtype=np.int32)
        for view in tables.views.values():
            view.texts = number[view.texts]
        writer.drop(f"texts/vectors.{segments}.f16")
        with writer.place("texts/vectors.0.f16").open("wb") as handle:
            vectors.tofile(handle)
        writer.seal("texts/vectors.0.f16")
        tables.texts = TextTable(texts.keys[live], [vectors])
    elif generation is not None:
        for i in range(segments):
            writer.link(generation, f"texts/vectors.{i}.f16")
    writer.array("texts/keys.npy", tables.texts.keys)
