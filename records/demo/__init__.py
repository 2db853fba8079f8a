"""Our own synthetic outpatient records: made by a program from a hand-written table, no patient in them."""

from .cases import CaseKind, DemoCase, demo_cases, demo_records, demo_version
from .generator import generate_records

__all__ = ["CaseKind", "DemoCase", "demo_cases", "demo_records", "demo_version", "generate_records"]
