"""Reads the table from its files and checks that they fit together."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...errors import InputError
from .knowledge import CommonTable, DemoTable, DepartmentTable

DATA = Path(__file__).parent.parent / "data" / "demo"
_KINDS = ("complaint", "history", "examination")


def load_table(folder: Path = DATA) -> DemoTable:
    """Read and check the table.

    Args:
        folder: holds ``common.toml`` and ``departments/``, one TOML file each.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    path = folder / "common.toml"
    try:
        common = CommonTable.model_validate(_toml(path))
        departments = []
        for path in sorted((folder / "departments").glob("*.toml")):
            departments.append(DepartmentTable.model_validate(_toml(path)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"{path}: {where}: {first['msg']}"
        raise InputError(msg) from error
    table = DemoTable(common=common, departments=departments)
    if fault := _fault(table):
        msg = f"{folder}: {fault}"
        raise InputError(msg)
    return table


@lru_cache(maxsize=1)
def shipped_table() -> DemoTable:
    """The table that ships with wardround, read once."""
    return load_table()


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        msg = f"{path}: {error}"
        raise InputError(msg) from error


def _fault(table: DemoTable) -> str | None:
    """What one file says of another that is not so, or None."""
    known: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    for part in table.departments:
        for kind, keys in _defined(part).items():
            if twice := known[kind] & set(keys):
                return f"{part.department or 'shared'}: {kind} {sorted(twice)} is defined in two files"
            known[kind] |= set(keys)
    told = known["complaint"] | known["history"]
    if lost := {key for aside in table.common.aside for key in aside.unless} - told:
        return f"common: unless {sorted(lost)} of an aside is defined in no file"
    sites = {site for part in table.departments for site in part.examination | part.lab}
    names = {part.department for part in table.departments if part.department}
    faults = (_department_fault(part, known, sites, names) for part in table.departments)
    return next((fault for fault in faults if fault), None)


def _defined(part: DepartmentTable) -> dict[str, list[str]]:
    sites = (part.examination | part.lab).values()
    found = [key for site in sites for key in site if key != "normal"]
    return {"complaint": list(part.complaint), "history": list(part.history), "examination": found}


def _department_fault(
    part: DepartmentTable, known: dict[str, set[str]], sites: set[str], names: set[str]
) -> str | None:
    if lost := {*part.routine, *part.beyond} - sites:
        return f"{part.department}: site {sorted(lost)} has findings in no file"
    for disease in part.diagnosis:
        for kind, defined in known.items():
            if lost := set(getattr(disease, kind)) - defined:
                return f"{disease.en[0]}: {kind} {sorted(lost)} is defined in no file"
        if lost := set(disease.departments) - names:
            return f"{disease.en[0]}: department {sorted(lost)} has no file"
    return None
