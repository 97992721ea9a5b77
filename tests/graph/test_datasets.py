"""Named data sets: the cache, checksums, downloads from a server on this machine, and real graphs where present."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import cast
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from fedkge.base.errors import ConfigurationError, DataError, UnavailableError
from fedkge.graph import datasets
from fedkge.graph.catalogue import DATASETS, Dataset, SplitFile
from fedkge.graph.datasets import cache_folder, fetch, is_cached, labels, load
from fedkge.graph.download import download, open_https
from fedkge.graph.graph import SPLITS
from fedkge.graph.summary import describe
from tests.real_data import data_folder

TEXT = {
    "train": b"".join(b"entity%d\trelation%d\tentity%d\n" % (i % 97, i % 5, i % 89) for i in range(9000)),
    "valid": b"entity1\trelation0\tentity2\n",
    "test": b"entity3\trelation1\tentity4\n",
}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Source:
    """A server with files; `cut_after` breaks an answer off, `resumes` says whether it knows ranges."""

    url: str = ""
    content: dict[str, bytes] = field(default_factory=dict)
    cut_after: int | None = None
    resumes: bool = True
    ranges: list[str | None] = field(default_factory=list)


def plain_http(request: Request) -> HTTPResponse:
    return cast(HTTPResponse, build_opener(ProxyHandler({})).open(request, timeout=10))


@pytest.fixture
def source() -> Iterator[Source]:
    served = Source(content={f"/{split}.txt": text for split, text in TEXT.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            served.ranges.append(wanted)
            content = served.content.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and served.resumes else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = len(content) if served.cut_after is None else start + served.cut_after
            self.wfile.write(content[start:end])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEDKGE_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tiny(source: Source, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    files = tuple(SplitFile(s, text.count(b"\n"), sha256(text), f"{source.url}/{s}.txt") for s, text in TEXT.items())
    dataset = Dataset("tiny", entities=97, relations=5, files=files, licence="none", citation="none")
    monkeypatch.setitem(DATASETS, "tiny", dataset)
    return dataset


def test_fetch_fills_the_cache_once_and_says_so(
    source: Source, tiny: Dataset, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not is_cached("tiny")
    assert fetch("tiny", opener=plain_http) == cache / "tiny"
    said = capsys.readouterr()
    assert said.out == ""
    assert f"fetching {cache / 'tiny' / 'train.txt'} from {source.url}/train.txt" in said.err.replace("\n", "")
    assert {path.name: path.read_bytes() for path in (cache / "tiny").iterdir()} == {
        f"{split}.txt": text for split, text in TEXT.items()
    }
    assert is_cached("tiny")
    fetch("tiny", opener=plain_http)
    assert len(source.ranges) == 3
    graph = load("tiny")
    assert (len(graph.entities), len(graph.relations), len(graph.test)) == (97, 5, 1)


def test_a_broken_transfer_is_continued(source: Source, tiny: Dataset, cache: Path) -> None:
    source.cut_after = 100_000
    with pytest.raises(UnavailableError, match="broke off after 100000 of"):
        fetch("tiny", progress=False, opener=plain_http)
    part = cache / "tiny" / "train.txt.part"
    assert part.read_bytes() == TEXT["train"][:100_000]
    assert not (cache / "tiny" / "train.txt").exists()
    source.cut_after = None
    fetch("tiny", progress=False, opener=plain_http)
    assert source.ranges[1] == "bytes=100000-"
    assert (cache / "tiny" / "train.txt").read_bytes() == TEXT["train"]
    assert not part.exists()


def test_a_server_without_ranges_starts_anew(source: Source, tmp_path: Path) -> None:
    source.resumes = False
    target = tmp_path / "train.txt"
    (tmp_path / "train.txt.part").write_bytes(TEXT["train"][:500])
    download(f"{source.url}/train.txt", target, sha256(TEXT["train"]), opener=plain_http)
    assert target.read_bytes() == TEXT["train"]


def test_a_part_that_is_already_whole_is_taken(source: Source, tmp_path: Path) -> None:
    (tmp_path / "train.txt.part").write_bytes(TEXT["train"])
    download(f"{source.url}/train.txt", tmp_path / "train.txt", sha256(TEXT["train"]), opener=plain_http)
    assert (tmp_path / "train.txt").read_bytes() == TEXT["train"]


def test_line_ends_of_windows_have_the_same_checksum(source: Source, tiny: Dataset) -> None:
    source.content = {path: text.replace(b"\n", b"\r\n") for path, text in source.content.items()}
    fetch("tiny", progress=False, opener=plain_http)
    assert len(load("tiny").valid) == 1


def test_a_wrong_checksum_leaves_nothing_behind(source: Source, tiny: Dataset, cache: Path) -> None:
    source.content["/train.txt"] = b"something\telse\tentirely\n"
    with pytest.raises(DataError) as caught:
        fetch("tiny", progress=False, opener=plain_http)
    assert f"expected sha256 {sha256(TEXT['train'])}" in str(caught.value)
    assert f"got {sha256(source.content['/train.txt'])}" in str(caught.value)
    assert list((cache / "tiny").iterdir()) == []


def test_a_missing_page_says_which_files_to_put_where(source: Source, tiny: Dataset, cache: Path) -> None:
    del source.content["/valid.txt"]
    with pytest.raises(UnavailableError, match="HTTP status 404") as caught:
        fetch("tiny", progress=False, opener=plain_http)
    assert f"{cache / 'tiny' / 'valid.txt'} from {source.url}/valid.txt" in str(caught.value)
    assert str(cache / "tiny" / "train.txt") not in str(caught.value)
    assert caught.value.exit_code == 5


def test_without_network_load_says_which_files_to_put_where(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(UnavailableError, match="cannot be reached") as caught:
        load("fb15k-237")
    for file in DATASETS["fb15k-237"].files:
        assert str(cache / "fb15k-237" / file.file_name) in str(caught.value)
        assert file.sha256 in str(caught.value)


def test_a_file_without_address_is_explained(cache: Path) -> None:
    with pytest.raises(UnavailableError, match=r"pip download pykeen==1\.11\.1 --no-deps") as caught:
        load("umls")
    assert f"'pykeen/datasets/umls/*.txt' -d {cache / 'umls'}" in str(caught.value)
    assert DATASETS["umls"].files[2].sha256 in str(caught.value)


def test_only_https_is_spoken(source: Source) -> None:
    with pytest.raises(URLError, match="unknown url type: http"):
        open_https(Request(f"{source.url}/train.txt"))  # noqa: S310 (it must be refused)
    assert source.ranges == []
    assert all(file.url.startswith("https://") for dataset in DATASETS.values() for file in dataset.files if file.url)


def test_a_cache_that_cannot_be_written_is_said(source: Source, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnavailableError, match=r"cannot write .* set FEDKGE_DATA to a writable folder"):
        download(f"{source.url}/train.txt", tmp_path / "file" / "train.txt", "", opener=plain_http)


def test_a_cached_file_with_other_content_is_refused(tiny: Dataset, cache: Path) -> None:
    (cache / "tiny").mkdir(parents=True)
    for split, text in TEXT.items():
        (cache / "tiny" / f"{split}.txt.xz").write_bytes(lzma.compress(text))
    assert len(load("tiny").valid) == 1
    other = b"a\tb\tc\n"
    (cache / "tiny" / "test.txt.xz").write_bytes(lzma.compress(other))
    with pytest.raises(DataError, match=f"expected the sha256 {tiny.files[2].sha256}.*got {sha256(other)}"):
        load("tiny")


def test_names_paths_and_neither(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "umls").mkdir()
    (tmp_path / "umls" / "train.txt").write_text("a\tr\tb\n")
    assert len(load("./umls").train) == 1
    assert len(load(Path("umls")).train) == 1
    with pytest.raises(UnavailableError):
        load("umls")
    with pytest.raises(ConfigurationError, match=r"'UMLSS': did you mean umls.*and there is no such path"):
        load("UMLSS")
    with pytest.raises(DataError, match="no such file or folder"):
        load("./nothing/here")
    with pytest.raises(ConfigurationError, match="columns can be chosen for paths only"):
        load("umls", columns=("a", "b", "c"))
    with pytest.raises(ConfigurationError, match="demo has no files to fetch"):
        fetch("demo")


def test_the_cache_is_the_platforms_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDKGE_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_cache_dir", lambda name, **_: f"/somewhere/{name}")
    assert cache_folder() == Path("/somewhere/fedkge/data")


def test_labels_are_read_beside_the_data(cache: Path) -> None:
    assert labels("fb15k-237") == {}
    (cache / "fb15k-237").mkdir(parents=True)
    (cache / "fb15k-237" / "entity_labels.tsv.xz").write_bytes(lzma.compress(b"/m/1\tQ1\tOne\n/m/2\tQ2\t\n"))
    assert labels("fb15k-237") == {"/m/1": "One"}


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.files])
def test_real_graphs_hold_what_the_catalogue_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDKGE_DATA", str(data_folder(name).parent))
    graph, dataset = load(name), DATASETS[name]
    assert (graph.name, len(graph.entities), len(graph.relations)) == (name, dataset.entities, dataset.relations)
    assert {split: len(graph.split(split)) for split in SPLITS} == {s: dataset.triples(s) for s in SPLITS}
    assert graph.removed_duplicates == 0
    assert set(labels(name)) <= set(graph.entities)


def test_the_summary_of_fb15k_237_is_the_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDKGE_DATA", str(data_folder("fb15k-237").parent))
    summary = describe(load("fb15k-237"))
    assert summary.self_loops["train"] == 1625
    assert summary.entities_in_train == 14505
    assert summary.unseen == {"valid": 17535 - 17526, "test": 20466 - 20438}
    assert summary.also_in_train == {"valid": 0, "test": 0}
    assert summary.degree_mean == pytest.approx(37.52, abs=0.005)
    assert summary.degree_median == 22
    assert labels("fb15k-237")["/m/010016"] == "Denton"
