"""Build a case index from a file of your own, ask it a case, and let a new record in.

Run: python examples/own_records.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from wardround import OutpatientRecord, Settings, Wardround
from wardround.settings import CasesSettings, PrivacySettings

RECORDS = Path(__file__).with_name("records.jsonl")


def main() -> None:
    with TemporaryDirectory() as folder:
        settings = Settings(
            privacy=PrivacySettings(
                deidentified=True
            ),  # ours are invented; yours need your word, or scrub=True
            cases=CasesSettings(index=Path(folder) / "cases"),
        )
        app = Wardround.from_settings(settings)
        app.build_cases(RECORDS)

        answer = app.query(
            "Painful red eye since last night, rings around lamps. IOP 50 mmHg, cornea hazy.",
            department="ophthalmology",
            age=67,
            sex="F",
        )
        print(answer)
        for diagnosis in answer.details.diagnoses or []:
            print(
                f"{diagnosis.share:5.0%}  {diagnosis.code or '-':7}  {diagnosis.name}  {diagnosis.evidence}"
            )
        for node in answer.source_nodes[:2]:
            print(node.node_id, f"{node.score:.2f}", node.metadata["channel_scores"])

        new = OutpatientRecord(
            id="e07",
            department="ophthalmology",
            text="Chief complaint: Curtain over the left eye.\nExamination: Retina detached above.",
            diagnoses=[{"name": "Retinal detachment", "code": "H33.0"}],
        )
        app.add_cases([new])
        print(app.query("A curtain came down over one eye."))


if __name__ == "__main__":
    main()
