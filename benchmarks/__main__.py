"""`python -m benchmarks` lists the measurements; `python -m benchmarks speed` runs one, `all` runs every one."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "speed": "training and ranking against PyKEEN on FB15k-237, one thread; peak memory of training",
    "scale": "two million entities and ten million triples within three times the tables' memory",
    "parallel": "a federation of three clients on two cores against one",
    "utility": "`central`, `federated`: how well the four models rank; `frontier`, `tune`: what a budget buys (hours)",
    "attack_speed": "how long all attacks take on a 20-round transcript of FB15k-237, and SI's memory",
    "private_step": "a private step against the same step without privacy, and against Opacus",
    "pass_rate": "how often the paper's test passes on FB15k-237 at its parameters (minutes)",
    "alignment": "aligning 14,541 names of three sites: under a shared key, and jointly",
    "federation": "a round over NVFlare beyond local training, beside the embedded engine; float16 on the wire",
    "report_page": "size and time of the report of a 100-round run with five attacks",
    "holds": "how much of codex-s and FB15k-237 a noisy copy holds, and what released values say about it (minutes)",
    "digests": "same bits: models of every strategy and defence under research seeds, against a stored table (--check)",
    "reading": "CPU time for files of line ends, of one line and of triples: it grows with the size and no faster",
}
"""Name of a module here with a `main(arguments)` that returns an exit code, and what it measures."""


def main(arguments: list[str]) -> int:
    """Run the measurement that is named first, or list what there is."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m benchmarks NAME [OPTIONS], where NAME is one of\n")
        print(
            "\n".join(
                f"  {name:10} {what}" for name, what in {**BENCHMARKS, "all": "speed, scale and parallel"}.items()
            )
        )
        return 0
    name, rest = arguments[0], arguments[1:]
    if name == "all":
        return max(_run(each, []) for each in ("speed", "scale", "parallel"))
    if name not in BENCHMARKS:
        print(f"no benchmark {name!r}: expected one of {', '.join(BENCHMARKS)}, all", file=sys.stderr)
        return 2
    return _run(name, rest)


def _run(name: str, arguments: list[str]) -> int:
    code: int = importlib.import_module(f"benchmarks.{name}").main(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
