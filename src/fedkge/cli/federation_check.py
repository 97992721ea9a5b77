"""`fedkge federation check`: what a site would give away under some terms, before it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedkge.base.text import printable
from fedkge.cli.tables import grid, print_json, say, stdout

if TYPE_CHECKING:
    from fedkge.configuration import Configuration
    from fedkge.deploy.preview import Preview

EXAMPLE = "Example: fedkge federation check site.toml --terms federation.toml"


def check(
    site: Annotated[Path, typer.Argument(help="site.toml.")] = Path("site.toml"),
    terms: Annotated[
        Path | None, typer.Option(help="The coordinator's federation.toml; else defaults within limits.")
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="List names that became one. They are secret.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Say what this site would promise and send: read its files, judge the terms, calibrate the noise, send nothing.

    For this site only: what it prints is computed from the exact triples. Nothing is drawn and nothing is charged.

    Terms that the site refuses are an error (exit code 11) that says what the site allows.
    """
    from fedkge.accounting.deltas import large_epsilon  # noqa: PLC0415 (slow to import)
    from fedkge.deploy.federation_file import read_federation  # noqa: PLC0415 (slow to import)
    from fedkge.deploy.policy import proposal  # noqa: PLC0415
    from fedkge.deploy.preview import preview  # noqa: PLC0415
    from fedkge.deploy.site_settings import read_site  # noqa: PLC0415
    from fedkge.report.guess_words import guess_words  # noqa: PLC0415

    settings = read_site(site)
    asked = proposal(read_federation(terms).configuration) if terms else settings.limits.usual
    found = preview(settings, asked)
    server_key = _server_key(settings.kit)
    if as_json:
        print_json({**_record(found, names), "requests": server_key})
        return
    rows = [
        ("promise", _promised(found)),
        *([("a guess is worth", guess_words(found.worth))] if found.worth else []),
        *([("a copy holds", found.holds)] if found.holds else []),
        *((f"leaves {when}", what) for when, what in found.told.items()),
        ("names come", found.names_follow),
        ("entity names", found.entities.summary),
        ("relation names", found.relations.summary),
        ("key and rules", f"{found.fingerprint}: the same at all sites"),
        ("obeys", _obeys(server_key)),
    ]
    stdout().print(grid(f"{found.site} in {found.federation}", ("", ""), rows, words=(0, 1)))
    if names:
        for after, before in found.entities.collisions.items():
            stdout().print(f"{printable(after)}: {', '.join(map(printable, before))}", markup=False, soft_wrap=True)
    if warning := large_epsilon(found.configuration.privacy.epsilon):
        say(f"WARNING: {warning}")
    if found.promise is None:
        say("WARNING: without a defence every row shows what this site's triples taught it.")


def _server_key(kit: Path) -> str | None:
    """The fingerprint of the key that the server signs its requests with, if the start-up kit is here."""
    from fedkge.deploy.request_keys import PUBLIC_FILE, fingerprint, read_public_key  # noqa: PLC0415

    startup = kit / "startup"
    return fingerprint(read_public_key(startup)) if (startup / PUBLIC_FILE).exists() else None


def _obeys(server_key: str | None) -> str:
    if server_key is None:
        return "nobody yet: the start-up kit with the server's public key is not here, or too old to have one"
    return f"requests signed with the key {server_key}: compare it with the coordinator's by telephone"


def _record(found: Preview, names: bool) -> dict[str, Any]:
    reports = {"entities": found.entities, "relations": found.relations}
    return {
        "site": found.site,
        "federation": found.federation,
        "promised": _promised(found),
        "guess": found.worth.record() if found.worth else None,
        "holds": found.holds,
        "leaves": found.told,
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
    from fedkge.configuration import kebab  # noqa: PLC0415

    own = {"data", "columns"}
    return {kebab(name): value for name, value in configuration.as_options().items() if name not in own}


def _promised(found: Preview) -> str:
    """The promise in one line."""
    from fedkge.report.promise_words import promise_line  # noqa: PLC0415 (slow to import)

    return promise_line(found.promise) if found.promise else "nothing: this site has no defence"
