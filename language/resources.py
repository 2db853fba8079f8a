"""Reads the rule files that a clinician may edit; each has a schema here or beside its reader."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import InputError

DATA = Path(__file__).parent / "data"

RulesT = TypeVar("RulesT", bound="RuleFile")


class RuleFile(BaseModel):
    """Base of every rule file's schema: unknown keys are errors, so that a typing error is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


def load_rules(path: Path, schema: type[RulesT]) -> RulesT:
    """Read one TOML rule file.

    Args:
        path: the file.
        schema: what it must look like.

    Raises:
        InputError: the file is missing, is no TOML, or breaks its schema; names file and key.
    """
    try:
        return schema.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(
            f"{path}: rule file cannot be read ({error.strerror}); reinstall or restore it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {key}: {first['msg']}") from error


def fingerprint(*paths: Path) -> str:
    """Eight hex digits that change with the files' content; part of an identity."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:8]
