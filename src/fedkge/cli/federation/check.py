"""`fedkge federation check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedkge.accounting.deltas import large_epsilon
from fedkge.base.text import printable
from fedkge.cli.arguments import Json, SiteFile
from fedkge.cli.tables import grid, print_json, print_line, say, stdout
from fedkge.configuration import Configuration, kebab
from fedkge.deploy.federation_file import read_federation
from fedkge.deploy.policy import proposal
from fedkge.deploy.preview import Preview, preview
from fedkge.deploy.request_keys import PUBLIC_FILE, fingerprint, read_public_key
from fedkge.deploy.site_settings import read_site
from fedkge.report.guess_words import guess_words
from fedkge.report.promise_words import promise_line

EXAMPLE = "Example: fedkge federation check site.toml --terms federation.toml"


def check(
    site: SiteFile = Path("site.toml"),
    terms: Annotated[
        Path | None,
        typer.Option(help="The federation.toml of the server. Without it, the site's limits and defaults are used."),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Also list entity names that became one name. These names are secret.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what this site would promise and send, and send nothing.

    The command reads the site's files, checks the terms and calibrates the noise. It draws no noise and charges no
    budget. Its output is for this site only, because it is computed from the exact triples.

    If the site refuses the terms, the exit code is 11 and the error says what the site allows.
    """
    settings = read_site(site)
    asked = proposal(read_federation(terms).configuration) if terms else settings.limits.usual
    found = preview(settings, asked)
    server_key = _server_key(settings.kit)
    if as_json:
        print_json({**_record(found, names), "requests": server_key})
        return
    rows = [
        ("promise", _promised(found)),
        *([("a guess", guess_words(found.worth))] if found.worth else []),
        *([("synthetic graph", found.holds)] if found.holds else []),
        *((f"sent {when}", what) for when, what in found.leaves.items()),
        ("names come", found.names_follow),
        ("entity names", found.entities.summary),
        ("relation names", found.relations.summary),
        ("key and rules", f"{found.fingerprint} (must be the same at all sites)"),
        ("obeys", _obeys(server_key)),
    ]
    stdout().print(grid(f"{found.site} in {found.federation}", ("", ""), rows, words=(0, 1)))
    if names:
        for after, before in found.entities.collisions.items():
            print_line(f"{printable(after)}: {', '.join(map(printable, before))}")
    if warning := large_epsilon(found.configuration.privacy.epsilon):
        say(f"WARNING: {warning}")
    if found.promise is None:
        say("WARNING: there is no defence. Every row that this site sends can reveal its triples.")


def _server_key(kit: Path) -> str | None:
    """The fingerprint of the key that the server signs its requests with, if the start-up kit is here."""
    startup = kit / "startup"
    return fingerprint(read_public_key(startup)) if (startup / PUBLIC_FILE).exists() else None


def _obeys(server_key: str | None) -> str:
    if server_key is None:
        return "nobody yet: the start-up kit is missing, or it has no public key of the server"
    return f"requests signed with the key {server_key} (compare it with the coordinator's by telephone)"


def _record(found: Preview, names: bool) -> dict[str, Any]:
    reports = {"entities": found.entities, "relations": found.relations}
    return {
        "site": found.site,
        "federation": found.federation,
        "promised": _promised(found),
        "guess": found.worth.record() if found.worth else None,
        "holds": found.holds,
        "leaves": found.leaves,
        "names_come": found.names_follow,
        "sole_mentions": found.sole_mentions,
        "fingerprint": found.fingerprint,
        "names": {
            kind: {"names": report.names, "changed": report.changed, "collisions": len(report.collisions)}
            for kind, report in reports.items()
        },
        **({"collisions": {key: list(value) for key, value in found.entities.collisions.items()}} if names else {}),
        "configuration": _shown_options(found.configuration),
    }


def _shown_options(configuration: Configuration) -> dict[str, Any]:
    """The options that the site agrees to; its own graph is left out."""
    own = {"data", "columns"}
    return {kebab(name): value for name, value in configuration.as_options().items() if name not in own}


def _promised(found: Preview) -> str:
    """The promise in one line."""
    return promise_line(found.promise) if found.promise else "nothing: this site has no defence"
