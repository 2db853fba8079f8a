"""Made-up cases whose words tell their disease, for everything that learns from an index."""

from __future__ import annotations

import numpy as np
from plain_cases import PlainEmbedder
from wardround.indexes.cases import CaseIndex
from wardround.records.schema import Diagnosis, OutpatientRecord

DISEASES = ("glaucoma", "cataract", "asthma", "gout", "migraine", "eczema", "anemia", "scabies")
CLINIC_OF = {"glaucoma": "ophthalmology", "cataract": "ophthalmology", "eczema": "dermatology"}


def learnable_case(number, *, diseases=DISEASES, hardness=0.5, coded=False, headed=True):
    """Case ``number``: a few words of its disease, a few of another one, many of none."""
    rng = np.random.default_rng(number)
    disease = diseases[number % len(diseases)]
    other = diseases[int(rng.integers(len(diseases)))]

    def words(count):
        drawn = []
        for _ in range(count):
            source = rng.random()
            if source < (1 - hardness) * 0.5:
                drawn.append(f"{disease[:4]}sign{rng.integers(5)}")
            elif source < 0.4:
                drawn.append(f"{other[:4]}sign{rng.integers(5)}")
            else:
                drawn.append(f"plain{rng.integers(60)}")
        return " ".join(drawn)

    if headed:
        text = f"Chief complaint: {words(4)}.\nHistory: {words(10)}.\nExamination: {words(8)}."
    else:
        text = f"{words(4)}. {words(10)}. {words(8)}."
    return OutpatientRecord(
        id=f"c{number}",
        department=CLINIC_OF.get(disease, "general practice"),
        age=float(20 + 7 * (number % len(diseases)) + rng.integers(5)),
        sex="FM"[number % 2],
        language="en",
        text=text,
        diagnoses=[
            Diagnosis(name=disease, code=f"X{number % len(diseases)}0.{number % 3}" if coded else None)
        ],
    )


def learnable_index(folder, count, **how):
    """An index of the first ``count`` cases."""
    records = [learnable_case(number, **how) for number in range(count)]
    return CaseIndex.build(records, folder, embedder=PlainEmbedder())
