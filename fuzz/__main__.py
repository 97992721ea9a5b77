"""`python -m fuzz`: fuzz some targets, or all, for so many seconds each; the exit code tells of findings."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.targets import Target, all_targets

HOME = Path(".fuzz")
STALL_SECONDS, MOST_MEGABYTES, LARGEST_INPUT = 20, 3000, 65536
"""An input that takes longer, or more memory, is a finding too."""


def fuzz(name: str, target: Target, seconds: int) -> bool:
    """Fuzz one target; whether nothing was found."""
    corpus, findings = HOME / name / "corpus", HOME / name / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    before = set(findings.iterdir())
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:  # noqa: S108
        for number, seed in enumerate(target.seeds(Path(folder))):
            (corpus / f"seed-{number:03d}").write_bytes(seed)
        log = HOME / name / "log"
        with log.open("wb") as file:
            ended = subprocess.run(
                [sys.executable, "-m", "fuzz.run", name, folder, *_limits(seconds, findings), str(corpus)],
                stdout=file,
                stderr=subprocess.STDOUT,
                check=False,
            )
    said = log.read_text(encoding="utf-8", errors="replace")
    runs = next((line.split()[-1] for line in said.splitlines() if "number_of_executed_units" in line), "?")
    print(f"{name}: {runs} inputs in {seconds} seconds, {'no finding' if ended.returncode == 0 else 'A FINDING'}")
    if ended.returncode:
        print("\n".join(said.splitlines()[-30:]))
        print("\n".join(f"  again: python -m fuzz {name} --repeat {path}" for path in set(findings.iterdir()) - before))
    return ended.returncode == 0


def _limits(seconds: int, findings: Path) -> list[str]:
    return [
        f"-max_total_time={seconds}",
        f"-max_len={LARGEST_INPUT}",
        f"-timeout={STALL_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
    ]


def main() -> None:
    """Read the arguments and fuzz."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--repeat", type=Path, help="run one input again, without atheris")
    options = parser.parse_args()
    targets = all_targets()
    chosen = options.targets or list(targets)
    if unknown := set(chosen) - set(targets):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(targets)}")
    if options.list:
        print("\n".join(targets))
        return
    logging.disable(logging.CRITICAL)
    if options.repeat:
        with tempfile.TemporaryDirectory() as folder:
            targets[chosen[0]].make(Path(folder))(options.repeat.read_bytes())
        return
    clean = [fuzz(name, targets[name], options.seconds) for name in chosen]
    sys.exit(0 if all(clean) else 1)


if __name__ == "__main__":
    main()
