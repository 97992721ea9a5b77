"""`fedkge federation`, `fedkge server` and `fedkge client`: a federation of organisations on their own machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedkge.cli import federation_check
from fedkge.cli.errors import guarded, stops_at_once
from fedkge.cli.tables import print_json, say, stdout

app = typer.Typer(no_args_is_help=True, help="A federation of organisations on their own machines.")

app.command("check", epilog=federation_check.EXAMPLE)(guarded(federation_check.check))

SERVER_EXAMPLE = "Example: fedkge server federation.toml"
CLIENT_EXAMPLE = "Example: fedkge client site.toml"
Json = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


@app.command("init", epilog="Example: fedkge federation init --server kge.example.org --site north --site south")
@guarded
def init(
    folder: Annotated[Path, typer.Argument(help="Where federation.toml and the start-up kits go.")] = Path(),
    site: Annotated[list[str] | None, typer.Option("--site", help="A site's name; once for each site.")] = None,
    server: Annotated[str, typer.Option(help="The name under which the sites reach the server.")] = "localhost",
    port: Annotated[int, typer.Option(help="The server's port.")] = 8002,
    name: Annotated[str, typer.Option(help="The federation's name.")] = "study",
    rounds: Annotated[int, typer.Option(help="Communication rounds.")] = 20,
    as_json: Json = False,
) -> None:
    """Write a commented federation.toml and the start-up kits of the server and of every site.

    Where a federation.toml is already there, it is used as it is and only the kits are made.
    """
    from fedkge.deploy.layout import initialise  # noqa: PLC0415 (NVFlare is slow to import)
    from fedkge.deploy.provision import SERVER_KIT  # noqa: PLC0415
    from fedkge.deploy.request_keys import fingerprint, read_public_key  # noqa: PLC0415

    training = {"model": "transe", "defence": "recommended", "epsilon": 8.0, "rounds": rounds}
    layout = initialise(folder, name, server, port, site or [], training)
    server_key = fingerprint(read_public_key(layout.settings.kits / SERVER_KIT / "startup"))
    if as_json:
        sites = {name: str(path) for name, path in layout.sites.items()}
        print_json({"federation": str(layout.federation), "sites": sites, "requests": server_key})
        return
    console = stdout()
    console.print(f"Settings of the server: {layout.federation}", markup=False, soft_wrap=True)
    for one, path in layout.sites.items():
        console.print(f"For {one}: {path.parent} (start-up kit and site.toml)", markup=False, soft_wrap=True)
    say("Send each site its folder, which holds its private key, by a way that you trust; and a copy of the settings.")
    say(f"Tell the sites by telephone that your requests are signed with the key {server_key}: fedkge federation check")
    say("One site makes the consortium key (fedkge federation key) and gives it to the others, never to the server.")
    say(f"Next: fedkge server {layout.federation}, and at each site: fedkge client site.toml")


@app.command("key", epilog="Example: fedkge federation key consortium.key")
@guarded
def key(path: Annotated[Path, typer.Argument(help="The file to make.")] = Path("consortium.key")) -> None:
    """Make the sites' common key, from which entities get their pseudonyms. The server must never have it."""
    from fedkge.deploy.keys import create_key  # noqa: PLC0415

    create_key(path)
    stdout().print(f"{path}: give it to the other sites, and to nobody else", markup=False, soft_wrap=True)


@app.command("signing-key", epilog="Example: fedkge federation signing-key keys")
@guarded
def signing_key(folder: Annotated[Path, typer.Argument(help="A folder for both files.")] = Path()) -> None:
    """Make the key that the server signs its requests with, for an NVFlare that runs already.

    `init` does this for the kits that it makes. The secret goes to the server's start-up folder alone.
    """
    from fedkge.deploy.request_keys import (  # noqa: PLC0415
        PUBLIC_FILE,
        SIGNING_FILE,
        create_request_keys,
        fingerprint,
        read_public_key,
    )
    from fedkge.store.durable_files import make_folder  # noqa: PLC0415

    make_folder(folder)
    create_request_keys(folder, ())
    console = stdout()
    console.print(f"{folder / SIGNING_FILE}: for `startup` at the server alone", markup=False, soft_wrap=True)
    console.print(f"{folder / PUBLIC_FILE}: for `startup` at every site", markup=False, soft_wrap=True)
    console.print(f"Fingerprint: {fingerprint(read_public_key(folder))}", markup=False, soft_wrap=True)


@app.command("try", epilog="Example: fedkge federation try --clients 3")
@guarded
def try_out(
    clients: Annotated[int, typer.Option(help="Number of sites.")] = 3,
    data: Annotated[str, typer.Option(help="Named data set, file or folder.")] = "demo",
    out: Annotated[Path, typer.Option(help="A new folder for everything.")] = Path("runs/federation"),
    rounds: Annotated[int, typer.Option(help="Communication rounds.")] = 5,
    epsilon: Annotated[float, typer.Option(help="Each site's budget; 0 is no defence.")] = 8.0,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 7,
    canaries: Annotated[int, typer.Option(help="Random triples for an audit; half are put into client-0.")] = 0,
    as_json: Json = False,
) -> None:
    """Run a whole federation on this machine: a server and sites as processes of their own, with TLS and certificates.

    The end is a run directory that `fedkge attack`, `audit` and `report` read like any other.
    """
    from fedkge.cli.planted_canaries import planted_canaries  # noqa: PLC0415
    from fedkge.deploy.trial import Trial  # noqa: PLC0415 (NVFlare is slow to import)
    from fedkge.graph.datasets import load  # noqa: PLC0415
    from fedkge.graph.split import split  # noqa: PLC0415

    trial = Trial(out, clients, rounds, epsilon or None, seed)
    shards, planted = planted_canaries(out, split(load(data), clients, "entity", seed), canaries, seed)
    with stops_at_once(f"what there is stays in {out}", trial.stop):
        result = trial.run(shards, planted, say)
    if as_json:
        print_json(result)
        return
    console = stdout()
    for name, path in result["runs"].items():
        console.print(f"{name}: {path}", markup=False, soft_wrap=True)
    say(f"Next: fedkge evaluate {result['runs']['everything']}, or fedkge report {result['runs']['everything']}")


@app.command("job", epilog="Example: fedkge federation job federation.toml --out job")
@guarded
def job(
    federation: Annotated[Path, typer.Argument(help="federation.toml.")] = Path("federation.toml"),
    out: Annotated[Path, typer.Option(help="The job folder to write.")] = Path("job"),
) -> None:
    """Write the job folder for an NVFlare that runs already: two class names, and no code."""
    from fedkge.deploy.federation_file import read_federation  # noqa: PLC0415
    from fedkge.deploy.provision import write_job  # noqa: PLC0415

    settings = read_federation(federation)
    write_job(out, settings.name, settings.configuration.federation.least_clients)
    stdout().print(f"{out}: submit it with NVFlare's own tools", markup=False, soft_wrap=True)


@app.command("gather", epilog="Example: fedkge federation gather federation.toml north/site.toml south/site.toml")
@guarded
def gather(
    federation: Annotated[Path, typer.Argument(help="federation.toml.")],
    sites: Annotated[list[Path], typer.Argument(help="Every site's site.toml, with its run and graph beside it.")],
    out: Annotated[Path, typer.Option(help="A new run directory.")] = Path("everything"),
) -> None:
    """Put the server's run and all sites' into one, for attacks and audits. Whoever does this sees everything."""
    from fedkge.deploy import gathering  # noqa: PLC0415
    from fedkge.deploy.federation_file import read_federation  # noqa: PLC0415
    from fedkge.deploy.site_settings import read_site  # noqa: PLC0415

    path = gathering.gather(read_federation(federation), [read_site(site) for site in sites], out)
    stdout().print(f"Run: {path}", markup=False, soft_wrap=True)
    say(f"Next: fedkge attack {path}, or fedkge report {path}")


def server(
    federation: Annotated[Path, typer.Argument(help="federation.toml.")] = Path("federation.toml"),
    as_json: Json = False,
) -> None:
    """Run the server of a federation until its last round; killed and started again, it goes on where it was."""
    from fedkge.deploy.federation_file import read_federation  # noqa: PLC0415
    from fedkge.deploy.server_supervisor import ServerSupervisor  # noqa: PLC0415 (NVFlare is slow to import)

    settings = read_federation(federation)
    supervisor = ServerSupervisor(federation, settings, say)
    with stops_at_once(f"go on with: fedkge server {federation}", supervisor.stop):
        status = supervisor.run()
    _show(status, settings.run, as_json)


def client(site: Annotated[Path, typer.Argument(help="site.toml.")] = Path("site.toml"), as_json: Json = False) -> None:
    """Take part in a federation with this site's own graph and budget; killed and started again, it goes on."""
    from fedkge.deploy.site_settings import read_site  # noqa: PLC0415
    from fedkge.deploy.site_supervisor import SiteSupervisor  # noqa: PLC0415

    settings = read_site(site)
    supervisor = SiteSupervisor(site, settings, say)
    with stops_at_once(f"go on with: fedkge client {site}", supervisor.stop):
        status = supervisor.run()
    _show(status, settings.run, as_json)


def _show(status: dict[str, Any], run: Path, as_json: bool) -> None:
    from fedkge.deploy.status_lines import describe  # noqa: PLC0415

    facts = {key: value for key, value in status.items() if key not in ("notes", "noted")}
    if as_json:
        print_json({"run": str(run), **facts})
        return
    stdout().print(describe(facts), markup=False)
    stdout().print(f"Run: {run}", markup=False, soft_wrap=True)
