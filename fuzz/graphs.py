"""Targets for graphs and start vectors: every format that a user may hand in."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import save

from fedkge.base.errors import FedkgeError
from fedkge.graph.folders import read_path
from fedkge.graph.readers import parse_columns
from fedkge.runs.vectors.reading import read_vectors
from fuzz.files import file_target, fixed, folder_target
from fuzz.targets import Judge, Target

LINES = b"aspirin\ttreats\theadache\nfever\tsign of\tflu\n"
CSV = b'head,relation,tail\n"Doe, Jane",has,NA\na,b,c\n'
NTRIPLES = b'<http://a/x> <http://a/p> <http://a/y> .\n<http://a/x> <http://a/p> "text"@en .\n_:b <http://a/p> _:c .\n'
TURTLE = b"@prefix a: <http://a/> .\na:x a:p a:y , a:z ; a:q [ a:r a:s ] .\n"
GRAPHS = tuple(f"fedkge.graph.{name}" for name in ("readers", "streams", "rdf", "folders", "numbered", "building"))


def _parquet(columns: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def _columns(_: Path) -> Judge:
    def judge(content: bytes) -> None:
        try:
            parse_columns(content.decode("utf-8", "replace"))
        except FedkgeError:
            return

    return judge


TRIPLES = _parquet({"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "c"]})
VECTORS = _parquet(
    {
        "kind": ["entity", "relation"],
        "name": ["a", "r"],
        "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32())),
    }
)
NAMED = save({"entities": np.ones((2, 3), np.float32)}, {"entities": json.dumps(["a", "b"])})
READING = ("fedkge.runs.vectors.reading",)

TARGETS: dict[str, Target] = {
    "tsv": file_target("graph.tsv", read_path, [LINES, b"a\tb\n", b"\xef\xbb\xbfa\tr\tb\r\n"], GRAPHS),
    "csv": file_target("graph.csv", read_path, [CSV, b"a;b;c\n1;2;3\n"], GRAPHS),
    "gzip": file_target("graph.tsv.gz", read_path, [gzip.compress(LINES, mtime=0)], GRAPHS),
    "parquet": file_target("graph.parquet", read_path, [TRIPLES], GRAPHS),
    "ntriples": file_target("graph.nt", read_path, [NTRIPLES], GRAPHS),
    "turtle": file_target("graph.ttl", read_path, [TURTLE], GRAPHS),
    "openke": folder_target(
        fixed(
            entity2id__txt=b"2\na\t0\nb\t1\n",
            relation2id__txt=b"1\nr\t0\n",
            train2id__txt=b"1\n0 1 0\n",
            valid2id__txt=b"1\n1 0 0\n",
        ),
        read_path,
        GRAPHS,
    ),
    "dictionaries": folder_target(
        fixed(
            entities__dict=b"0\ta\n1\tb\n",
            relations__dict=b"0\tr\n",
            train__txt=b"a\tr\tb\n",
            test__txt=b"b\tr\ta\n",
        ),
        read_path,
        GRAPHS,
    ),
    "columns": Target(_columns, lambda _: [b"head,relation,tail", b"a,b"], GRAPHS),
    "vectors-text": file_target("vectors.txt", read_vectors, [b"2 3\na 1 2 3\nb 4 5 6\n"], READING),
    "vectors-parquet": file_target("vectors.parquet", read_vectors, [VECTORS], READING),
    "vectors-safetensors": file_target("vectors.safetensors", read_vectors, [NAMED], READING),
}
