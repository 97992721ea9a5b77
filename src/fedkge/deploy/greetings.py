"""The sites' first greetings, which list the rows that each site owns. They are saved once and never change."""

from __future__ import annotations

from pathlib import Path

from fedkge.base.errors import RunError
from fedkge.deploy.alignment import PSEUDONYM_BYTES, malformed
from fedkge.deploy.wire import MOST_NAMES, WireError, decode, encode
from fedkge.federation.messages import Greeting
from fedkge.store.durable_files import make_folder, write_atomically


class Greetings:
    """A folder of greetings, one file per site."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, site: str, greeting: Greeting, width: int, settled: bool) -> str | None:
        """Save a greeting or, if rows are `settled`, compare it; returns the reason to refuse it, or None.

        `width` is the width of the server's own table; the server does not trust a site's width.
        """
        names, tags = greeting.names.get("entities"), greeting.tags.get("entities")
        if set(greeting.names) != {"entities"}:
            return f"expected pseudonyms of entities alone, got {sorted(greeting.names)}"
        if dict(greeting.widths) != {"entities": width}:
            return f"expected rows of {width} numbers, got {dict(greeting.widths)}; is it the same model and dimension?"
        if reason := malformed(names, MOST_NAMES):
            return reason
        if tags is None or tags.shape != (len(names or ()), PSEUDONYM_BYTES):
            return f"expected a tag of {PSEUDONYM_BYTES} bytes for each pseudonym, got {getattr(tags, 'shape', 'none')}"
        content, path = encode(greeting), self._folder / f"{site}.safetensors"
        if not settled:
            make_folder(self._folder)
            write_atomically(path, content)
        elif not path.exists() or path.read_bytes() != content:
            return "its greeting differs from its first one: was its graph or its key changed?"
        return None

    def all(self) -> dict[str, Greeting]:
        """The greetings of all sites that ever joined, by name."""
        found: dict[str, Greeting] = {}
        for path in sorted(self._folder.glob("*.safetensors")):
            found[path.stem] = _read(path)
        return found


def _read(path: Path) -> Greeting:
    try:
        message = decode(path.read_bytes())
    except (OSError, WireError) as error:
        raise RunError(f"{path}: expected a greeting, got a damaged file ({error}); restore it from a copy") from error
    if not isinstance(message, Greeting):
        raise RunError(f"{path}: expected a greeting, got {type(message).__name__}; restore it from a copy")
    return message
