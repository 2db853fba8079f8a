"""``wardround fit`` and ``wardround calibrate``."""

from __future__ import annotations

from typing import Any

from .console import print_report
from .options import AsJson, Config, Index, Records, settings_with


def fit(
    *, records: Records = None, index: Index = None, config: Config = None, as_json: AsJson = False
) -> None:
    """Learn weights, priors and a label scorer from records.

    What is learned is stored with the index.
    """
    app = _app(index, config)
    print_report("What was learned", app.fit(records), as_json=as_json)


def calibrate(
    records: Records = None, index: Index = None, config: Config = None, as_json: AsJson = False
) -> None:
    """Fit confidence to how often the leader was right.

    The calibration is stored with the index.
    """
    app = _app(index, config)
    print_report("Calibration", app.calibrate(records), as_json=as_json)


def _app(index: Index, config: Config) -> Any:
    settings = settings_with(config, cases={"index": index})
    from ..app import Wardround

    return Wardround.from_settings(settings)
