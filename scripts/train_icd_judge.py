"""Train the judge of code candidates from the code system itself and write ``judge.json``.

A wording that is not a title (an inclusion term, a cross-reference, an alias) is held out with everything
that comes from the same source entry, and must find its code again among the other wordings. No gold set
of names takes part.

    python scripts/train_icd_judge.py [--names 24000] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.neural_network import MLPClassifier
from wardround.knowledge.icd.candidates import Hits
from wardround.knowledge.icd.judge import FEATURES, PairFeatures
from wardround.knowledge.icd.sources import load_code_system
from wardround.knowledge.icd.system import TermKind, code_key
from wardround.knowledge.icd.terms import shipped_aliases
from wardround.knowledge.icd.wordings import Name, Wordings

logger = logging.getLogger(__name__)
_OUT = Path(__file__).parent.parent / "knowledge" / "data" / "icd" / "judge.json"
_FOUND, _WIDE = 50, 90
_CHUNK = 400
_HIDDEN = 24
_RARE_CHAPTERS = "STVWXY"


def _chosen(w: Wordings, names: int, rng: np.random.Generator, *, titles: bool) -> npt.NDArray[np.int64]:
    """Wordings to ask for: mostly of diseases, few of injuries and external causes."""
    chapter = np.array([code_key(code)[:1] for code in w.system.codes])[w.rows]
    usable = np.flatnonzero(
        (titles | (w.kinds != TermKind.TITLE)) & np.array([bool(key) for key in w.strict_of])
    )
    weight = np.where(np.isin(chapter[usable], list(_RARE_CHAPTERS)), 0.1, 1.0)
    size = min(names, len(usable))
    return np.sort(rng.choice(usable, size, replace=False, p=weight / weight.sum()))


_ADDED = [
    "type 2",
    "type 4",
    "type 1a",
    "type 3",
    "iii",
    "5",
    "12",
    "2b",
    "autosomal recessive",
    "autosomal dominant",
    "hereditary",
    "familial",
    "x-linked",
    "idiopathic",
    "severe",
    "early onset",
    "adult",
    "infantile",
    "juvenile",
    "primary",
    "chronic",
    "acute",
    "recurrent",
    "syndrome",
    "disease",
    "disorder",
    "susceptibility to",
    "with",
    "due to",
    "of childhood",
    "classic",
    "variant",
    "atypical",
    "progressive",
    "generalized",
]


def _disturbed(text: str, rng: np.random.Generator, spare: list[str]) -> str:
    """A wording as somebody else might write it: a word more or less, another order, a slip."""
    words = text.split()
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.integers(0, 6)
        at = int(rng.integers(0, len(words) + 1))
        if kind <= 1:
            words.insert(at if kind else len(words), str(rng.choice(_ADDED)))
        elif kind == 2:
            words.insert(at, str(rng.choice(spare)))
        elif kind == 3 and len(words) > 2:
            words.pop(min(at, len(words) - 1))
        elif kind == 4 and len(words) > 1:
            words = [*words[1:], words[0]]
        elif words:
            at = min(at, len(words) - 1)
            word = words[at]
            if len(word) > 4:
                cut = int(rng.integers(1, len(word) - 1))
                words[at] = word[:cut] + word[cut + 1 :]
    return " ".join(words)


def _examples(
    w: Wordings, chosen: npt.NDArray[np.int64], rng: np.random.Generator, *, disturb: bool
) -> tuple[npt.NDArray[np.float32], ...]:
    spare = [word for units in w.units[:: max(1, len(w) // 4000)] for word in units]
    texts: dict[int, str] = {}
    for literal, wordings in w.literal.items():
        for at in wordings:
            texts.setdefault(at, literal)
    keys = np.array(w.strict_of, dtype=object)
    features = PairFeatures(w)
    groups = np.unique(np.array(w.sources), return_inverse=True)[1]
    groups[np.array(w.sources) == ""] = -1
    xs, ys, qs = [], [], []
    for start in range(0, len(chosen), _CHUNK):
        batch = chosen[start : start + _CHUNK]
        names = [Name.of(texts[int(i)], "en") for i in batch]
        if disturb:
            names = [Name.of(_disturbed(name.literal, rng, spare), "en") for name in names]
        hits = w.grams.nearest(w.grams.encode([n.units for n in names]), _WIDE)
        held, strict = keys[batch][hits.query], keys[hits.term]
        own_row, own_group = w.rows[batch][hits.query], groups[batch][hits.query]
        same = (strict == held) & (w.rows[hits.term] == own_row)
        same |= (groups[hits.term] == own_group) & (own_group >= 0)
        same |= hits.term == batch[hits.query]
        keep = ~same | disturb
        query, term, cosine = hits.query[keep], hits.term[keep], hits.cosine[keep]
        rank = np.arange(len(query)) - np.searchsorted(query, query)
        near = rank < _FOUND
        hits = Hits(query[near], term[near], cosine[near])
        xs.append(features(names, hits))
        ys.append((w.rows[hits.term] == w.rows[batch][hits.query]).astype(np.float32))
        qs.append(hits.query.astype(np.int64) + start)
    return np.concatenate(xs), np.concatenate(ys), np.concatenate(qs)


def _report(
    name: str, score: npt.NDArray[np.float32], y: npt.NDArray[np.float32], q: npt.NDArray[np.int64]
) -> None:
    order = np.lexsort((-score, q))
    _, first = np.unique(q[order], return_index=True)
    top = order[first]
    found = np.bincount(q, y) > 0
    logger.info("%s: right %.4f, found among candidates %.4f, queries %d", name, y[top].mean(),
                found[np.unique(q)].mean(), len(top))  # fmt: skip


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=24_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    rng = np.random.default_rng(arguments.seed)
    system = load_code_system("icd10cm")
    w = Wordings(system, shipped_aliases(system))
    held = _examples(w, _chosen(w, arguments.names, rng, titles=False), rng, disturb=False)
    noisy = _examples(w, _chosen(w, arguments.names, rng, titles=True), rng, disturb=True)
    shift = held[2].max() + 1
    x, y = (np.concatenate([held[i], noisy[i]]) for i in (0, 1))
    q = np.concatenate([held[2], noisy[2] + shift])
    test = np.isin(q, rng.choice(q.max() + 1, q.max() // 10, replace=False))
    mean, scale = x[~test].mean(0), np.maximum(x[~test].std(0), 1e-3)
    classifier = MLPClassifier(
        (_HIDDEN,),
        activation="tanh",
        alpha=1e-4,
        batch_size=2048,
        learning_rate_init=2e-3,
        max_iter=14,
        random_state=arguments.seed,
    )
    z = np.clip((x - mean) / scale, -30, 30)
    classifier.fit(z[~test], y[~test])
    for part, chosen in (("held out", test & (q < shift)), ("disturbed", test & (q >= shift))):
        _report(f"{part}, cosine", x[chosen, 0], y[chosen], q[chosen])
        _report(f"{part}, judge", classifier.predict_proba(z[chosen])[:, 1], y[chosen], q[chosen])
    rounded = [np.round(a, 5).tolist() for a in (mean, scale)]
    weights = {
        "features": FEATURES,
        "mean": rounded[0],
        "scale": rounded[1],
        "hidden": np.round(classifier.coefs_[0], 4).tolist(),
        "hidden_bias": np.round(classifier.intercepts_[0], 4).tolist(),
        "out": np.round(classifier.coefs_[1][:, 0], 4).tolist(),
        "out_bias": round(float(classifier.intercepts_[1][0]), 4),
    }
    _OUT.write_text(json.dumps(weights) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
