"""Charges and releases until it is killed, and says on stdout what it was told is safe."""

from __future__ import annotations

import sys
import threading

from fedkge.accounting.ledger import Ledger
from fedkge.accounting.promises import Promise
from fedkge.mechanisms.events import Charge, SampledGaussian

ROUND = (Charge(SampledGaussian(rate=0.05, multiplier=1), 10),)
CLIENTS = ("a", "b")


def spend(ledger: Ledger, client: str, first: int) -> None:
    for number in range(first, first + 100_000):
        ledger.charge(client, number, ROUND)
        sys.stdout.write(f"{client} charged {number}\n")
        sys.stdout.flush()
        ledger.release(client, number)


def main(path: str) -> None:
    ledger = Ledger.open(path)
    for client in CLIENTS:
        ledger.promise(Promise(client, delta=1e-5, epsilon=8, largest_round=ROUND))
    starts = {client: 1 + max((entry.round or 0 for entry in ledger.by_round(client)), default=0) for client in CLIENTS}
    threads = [threading.Thread(target=spend, args=(ledger, client, starts[client])) for client in CLIENTS]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main(sys.argv[1])
