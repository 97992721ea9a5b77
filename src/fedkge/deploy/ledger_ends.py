"""The server remembers the ends of the sites' ledgers, so that a site notices when it returns with an older ledger.

With each upload, and when it accepts an invitation, a site sends a random number that identifies the last line of its
ledger. So the server has the mark of the released size and names before it receives them. The server writes the newest
number to disk before it uses the answer, and repeats it when it invites the site. The site itself compares. A server
that lies can only make the site refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError, RunError
from fedkge.base.plain_files import read_json_object
from fedkge.federation.messages import Accept, Invite, Upload
from fedkge.store.durable_files import make_folder, write_atomically

FILE = "ledgers.json"


@dataclass(frozen=True, slots=True)
class LedgerEnd:
    """The end of a site's ledger: the random number of its last line, and its number of releases."""

    mark: str = ""
    releases: int = 0


class _Kept(msgspec.Struct, frozen=True):
    """A ledger's end as stored in the file; every field is required."""

    mark: str
    releases: int


class LedgerEnds:
    """The ends of all sites' ledgers, in one file among the server's checkpoints.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ends = LedgerEnds(Path(folder))
    ...     older = ends.note({"north": Upload(1, {}, 7, None, mark="ab" * 16, releases=3)})
    ...     older, LedgerEnds(Path(folder)).of("north").releases, ends.of("south")
    ([], 3, LedgerEnd(mark='', releases=0))
    """

    def __init__(self, checkpoints: Path) -> None:
        self._path = checkpoints / FILE

    def of(self, site: str) -> LedgerEnd:
        """The newest end that this site has sent."""
        return self._read().get(site, LedgerEnd())

    def note(self, answers: Mapping[str, Upload | Accept]) -> list[str]:
        """Save the ends in these answers on disk; returns the sites whose ledgers have become shorter."""
        known = self._read()
        sent = {name: LedgerEnd(answer.mark, answer.releases) for name, answer in answers.items() if answer.mark}
        older = sorted(name for name, end in sent.items() if end.releases < known.get(name, LedgerEnd()).releases)
        newest = {**known, **{name: end for name, end in sent.items() if name not in older}}
        if newest != known:
            make_folder(self._path.parent)
            content = {name: asdict(end) for name, end in sorted(newest.items())}
            write_atomically(self._path, json.dumps(content).encode())
        return older

    def _read(self) -> dict[str, LedgerEnd]:
        if not self._path.exists():
            return {}
        try:
            kept = msgspec.convert(read_json_object(self._path, RunError, "restore it"), dict[str, _Kept])
        except msgspec.ValidationError as error:
            raise RunError(
                f"{self._path}: expected the ends of the sites' ledgers, got a damaged file ({error}); restore it"
            ) from error
        return {name: LedgerEnd(end.mark, end.releases) for name, end in kept.items()}


def check_remembered(ledger: Ledger, invite: Invite) -> None:
    """Refuse to continue with a ledger that lacks the last line that the server remembers."""
    if invite.mark and not ledger.has_mark(invite.mark):
        raise PrivacyError(
            f"{ledger.path}: the server remembers {invite.releases} releases of this site; this ledger has "
            f"{ledger.releases} and lacks the last line that the server knows. The ledger is an older copy or was "
            "begun again, or the server is wrong; nothing was released. Restore the newest run directory; "
            "without it, count the whole budget as spent"
        )
