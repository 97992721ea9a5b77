"""From a configuration to one client's defence: its public numbers, its noise, its promise in the ledger."""

from __future__ import annotations

from fedkge.accounting.accountants import make_accountant, merged
from fedkge.accounting.calibration import calibrate
from fedkge.accounting.ledger import Ledger
from fedkge.base.errors import PrivacyError
from fedkge.configuration import Configuration
from fedkge.defences import chosen_defence
from fedkge.defences.advance import digest_of, public_size
from fedkge.defences.defence import ClientDefence, PublicNumbers
from fedkge.graph import Graph
from fedkge.mechanisms.events import Charge


def client_defence(options: Configuration, client: str, shard: Graph, ledger: Ledger, number: int = 0) -> ClientDefence:
    """The client's defence: as its promise in the ledger says, or newly calibrated and promised there.

    `number` is the client's in the federation: under a research seed its noise follows from it.
    """
    defence = planned_defence(options, client, shard, ledger, number)
    if not ledger.is_promised(client) and (promise := defence.promise(client)):
        ledger.promise(promise)
    return defence


def planned_defence(
    options: Configuration, client: str, shard: Graph, ledger: Ledger, number: int = 0
) -> ClientDefence:
    """The same without the promise. The client's size is released and paid for: a refusal may depend on it."""
    chosen, entities = chosen_defence(options), len(shard.entities)
    if not chosen.keeps_ledger:
        return chosen.plan(options, PublicNumbers(len(shard.train), entities), 0.0)
    if ledger.is_promised(client):
        return _as_promised(options, client, entities, ledger)
    chosen.check_public(options, entities)
    size = public_size(options, client, shard, ledger, number)
    known = ledger.promises.get(client)
    data = known.facts.data if known else digest_of(client, shard, ledger)
    public = PublicNumbers(size, entities, data, _advance(ledger, client))
    noise = chosen.given_noise(options) or calibrated(options, public)
    defence = chosen.plan(options, public, noise)
    first = defence.first_round()
    if not defence.affordable(public.advance, first):
        cost = defence.accountant.epsilon(merged((*public.advance, *first)), defence.delta)
        raise PrivacyError(
            f"{client}: one round of {options.training.steps_per_round(size)} steps with noise {noise:g} costs epsilon "
            f"{cost:.3g}, the budget is {options.privacy.epsilon:g}: raise --noise, or leave it out and it is "
            "calibrated to the budget"
        )
    return defence


def _as_promised(options: Configuration, client: str, entities: int, ledger: Ledger) -> ClientDefence:
    """A run may be prolonged; what was calibrated may not follow."""
    made, chosen = ledger.promises[client], chosen_defence(options)
    fixed = {"rounds": made.plan.rounds, "delta": made.delta, "allow_large_delta": True}
    options = options.updated(**fixed, **chosen.promised_options(made.facts.mechanism))
    public = PublicNumbers(made.plan.triples, entities, made.facts.data, _advance(ledger, client))
    return chosen.plan(options, public, made.plan.noise)


def _advance(ledger: Ledger, client: str) -> tuple[Charge, ...]:
    return merged(charge for once in ledger.once(client).values() for charge in once.charges)


def calibrated(options: Configuration, public: PublicNumbers) -> float:
    """The least noise that keeps the budget, of which some is paid already."""
    chosen = chosen_defence(options)
    if options.privacy.epsilon is None:
        raise chosen.without_budget(options)
    any_noise = chosen.plan(options, public, 1.0)
    accountant = make_accountant("rdp") if any_noise.adaptive else any_noise.accountant
    return calibrate(
        lambda noise: chosen.plan(options, public, noise).planned(options.training.rounds),
        options.privacy.epsilon,
        any_noise.delta,
        accountant,
    )
