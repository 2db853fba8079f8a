"""Every setting, in one model: a TOML file, overridden by ``WARDROUND_*`` in the environment."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as SettingsSourceError

from .errors import SettingsError

ENV_PREFIX = "WARDROUND_"
ENV_DELIMITER = "__"
_SECRET = {"privacy.scrub_key", "llm.api_key"}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PrivacySettings(_Section):
    """A case index shows other patients' text, so one of the two must be on to build one.

    Attributes:
        deidentified: the hospital declares that its records are de-identified already.
        scrub: remove what patterns and the record's own fields can find. No guarantee.
        scrub_key: secret that decides how far each patient's dates move, and pseudonyms; with the same key a
            later ``add`` moves them alike. At least 16 characters; a new random one each run where None.
    """

    deidentified: bool = False
    scrub: bool = False
    scrub_key: SecretStr | None = Field(default=None, min_length=16)


class RecordsSettings(_Section):
    """How records are read.

    Attributes:
        columns: for CSV and Excel, record field -> column heading, e.g. ``diagnosis = "Main Dx"``.
        encoding: of text files; detected where None.
        max_reject_share: a build stops when more than this share of rows is bad.
        max_field_chars: longer fields are cut and counted.
    """

    columns: dict[str, str] = Field(default_factory=dict)
    encoding: str | None = None
    max_reject_share: float = Field(default=0.05, ge=0, le=1)
    max_field_chars: int = Field(default=200_000, ge=1_000)


class EmbedderSettings(_Section):
    """Which model turns text into vectors.

    Attributes:
        kind: ``use`` ships with wardround; ``bge-m3`` needs the ``bge`` extra and ``path``.
        path: local folder of the model; nothing is ever downloaded.
        batch_size: texts a call.
        threads: of the numeric library.
        whitening: 0 leaves vectors as they are, 1 whitens fully, 0.5 goes half way.
    """

    kind: Literal["use", "bge-m3"] = "use"
    path: Path | None = None
    batch_size: int = Field(default=64, ge=1, le=4096)
    threads: int = Field(default=1, ge=1, le=256)
    whitening: float = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _path_for_bge(self) -> Self:
        if self.kind == "bge-m3" and self.path is None:
            msg = "kind = 'bge-m3' needs path, the local folder of the model"
            raise ValueError(msg)
        return self


class LlmSettings(_Section):
    """The language model, if there is one; without ``base_url`` or ``path`` an extractive writer answers.

    Attributes:
        base_url: of an OpenAI-protocol server such as vLLM, e.g. ``http://127.0.0.1:8000/v1``.
        path: local folder of a model that vLLM runs in this process, for batch work; instead of ``base_url``.
        model: name as served; the server's first model where None.
        api_key: sent as bearer token.
        context_window: tokens of prompt and answer together.
        max_tokens: of one answer.
        temperature: 0 for the most likely answer.
        deadline_s: one deadline per question; what is not there by then is answered by the vote.
    """

    base_url: str | None = None
    path: Path | None = None
    model: str | None = None
    api_key: SecretStr | None = None
    context_window: int = Field(default=4096, ge=512)
    max_tokens: int = Field(default=400, ge=16)
    temperature: float = Field(default=0.0, ge=0, le=2)
    deadline_s: float = Field(default=30.0, gt=0, le=3600)

    @field_validator("base_url")
    @classmethod
    def _web_address(cls, url: str | None) -> str | None:
        if url is not None and not _is_web_address(url):
            msg = "give an address such as http://127.0.0.1:8000/v1"
            raise ValueError(msg)
        return url

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.base_url is not None and self.path is not None:
            msg = "base_url (a server) and path (a model in this process) exclude each other"
            raise ValueError(msg)
        return self


def _is_web_address(url: str) -> bool:
    if any(char.isspace() or not char.isprintable() for char in url):
        return False
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number up to 65535
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


class CasesSettings(_Section):
    """Search in the case index.

    Attributes:
        index: folder of the index.
        candidates: how many each channel proposes.
        neighbours: how many records vote.
        vote_power: exponent on a record's score in the vote.
        weights: TOML table of view weights by department; the shipped one where None.
        search_threads: of FAISS, one question at a time.
    """

    index: Path = Path("wardround-data/cases")
    candidates: int = Field(default=100, ge=1, le=5000)
    neighbours: int = Field(default=30, ge=1, le=1000)
    vote_power: float = Field(default=4.0, ge=0, le=32)
    weights: Path | None = None
    search_threads: int = Field(default=1, ge=1, le=256)


class ConfidenceSettings(_Section):
    """Where the routes part. The paper's cuts apply to raw confidence, ours to the calibrated one.

    Attributes:
        scale: which of the two decides; ``auto`` uses the calibrated one where a calibration exists.
        vote_above: more confident than this: the records vote, no language model.
        deep_below: at most this: chain of thought.
    """

    scale: Literal["auto", "raw", "calibrated"] = "auto"
    vote_above: float = Field(default=0.85, ge=0, le=1)
    deep_below: float = Field(default=0.5, ge=0, le=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.deep_below > self.vote_above:
            msg = f"deep_below ({self.deep_below}) must not be above vote_above ({self.vote_above})"
            raise ValueError(msg)
        return self


class Icd10Settings(_Section):
    """Coding.

    Attributes:
        system: ``icd10cm``, ``icd10`` (WHO) or the path of a CSV ``code,title[,alias...]``.
        aliases: CSV ``alias,code`` of local names, added to the shipped table.
        min_score: a fuzzy match below this is no match.
        min_margin: and so is one whose lead over another category is smaller.
        prefer_leaf: give the "unspecified" leaf below a code that is no leaf, as billing wants it.
    """

    system: str = "icd10cm"
    aliases: Path | None = None
    min_score: float | None = Field(default=None, ge=0, le=1)
    min_margin: float | None = Field(default=None, ge=0, le=1)
    prefer_leaf: bool = False


class Settings(BaseSettings):
    """All settings. Read with :meth:`load`; every value has a working default."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter=ENV_DELIMITER, extra="forbid", frozen=True
    )

    privacy: PrivacySettings = PrivacySettings()
    records: RecordsSettings = RecordsSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    llm: LlmSettings = LlmSettings()
    cases: CasesSettings = CasesSettings()
    confidence: ConfidenceSettings = ConfidenceSettings()
    icd10: Icd10Settings = Icd10Settings()
    cache: Path | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, which arrives as init arguments."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings

    @classmethod
    def load(cls, path: str | Path | None = None) -> Self:
        """Read a TOML file and the environment.

        Args:
            path: of the file; only the environment is read where None.

        Raises:
            SettingsError: naming file or variable, key and what is allowed.
        """
        data: dict[str, Any] = {}
        if path is not None:
            path = Path(path)
            try:
                data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            except OSError as error:
                msg = f"{path}: cannot be read ({error.strerror}); give an existing TOML file"
                raise SettingsError(msg) from error
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                msg = f"{path}: not valid TOML: {error}"
                raise SettingsError(msg) from error
            except RecursionError as error:
                msg = f"{path}: not valid TOML: nested too deeply"
                raise SettingsError(msg) from error
        _refuse_unknown_variables()
        try:
            return cls(**data)
        except ValidationError as error:
            raise SettingsError(_explain(error, path)) from error
        except SettingsSourceError as error:
            msg = f"environment: {error}"
            raise SettingsError(msg) from error

    def changed(self, name: str, **values: object) -> Self:
        """These settings with some keys of one section changed, checked as if they came from a file.

        Raises:
            SettingsError: naming key and what is allowed.
        """
        section = getattr(self, name)
        try:
            new = type(section).model_validate(section.model_dump() | values)
        except ValidationError as error:
            raise SettingsError(_explain(error, None, name)) from error
        return self.model_copy(update={name: new})


def _sections() -> dict[str, type[BaseModel] | None]:
    return {
        name: kind if isinstance(kind := info.annotation, type) and issubclass(kind, BaseModel) else None
        for name, info in Settings.model_fields.items()
    }


def _known_keys() -> list[str]:
    keys = []
    for name, section in _sections().items():
        keys += [f"{name}.{key}" for key in section.model_fields] if section else [name]
    return keys


def _refuse_unknown_variables() -> None:
    known = {ENV_PREFIX + key.replace(".", ENV_DELIMITER).upper() for key in _known_keys()}
    known |= {ENV_PREFIX + name.upper() for name in _sections()}
    free = f"{ENV_PREFIX}RECORDS{ENV_DELIMITER}COLUMNS{ENV_DELIMITER}"
    for variable in os.environ:
        upper = variable.upper()
        if upper.startswith(ENV_PREFIX) and upper not in known and not upper.startswith(free):
            raise SettingsError(f"environment: unknown variable {variable}; {_suggest(upper, sorted(known))}")


def _suggest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _explain(error: ValidationError, path: Path | None, *section: str) -> str:
    lines = []
    for fault in error.errors():
        where = [*section, *(str(part) for part in fault["loc"])]
        key = ".".join(where) or "settings"
        variable = ENV_PREFIX + ENV_DELIMITER.join(where).upper()
        source = variable if variable in os.environ else str(path or "settings")
        if fault["type"] == "extra_forbidden":
            known = _known_keys() if len(where) > 1 else [*_sections()]
            lines.append(f"{source}: unknown key {key}; {_suggest(key, known)}")
        else:
            hidden = isinstance(fault["input"], dict) or key in _SECRET
            got = "" if hidden else f", got {fault['input']!r}"
            lines.append(f"{source}: {key}: {fault['msg']}{got}")
    return "\n".join(lines)
