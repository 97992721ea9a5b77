"""Every option of training as a typed keyword argument: what an editor shows for `fk.train(`.

A test compares this list with the configuration. `docs/reference/configuration.md` says what each option does.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class TrainOptions(TypedDict, total=False):
    """The options of a training run, flat, as `fedkge train` has them; `data` is an argument of its own.

    >>> options: TrainOptions = {"model": "rotate", "epsilon": 8.0}
    >>> sorted(options)
    ['epsilon', 'model']
    """

    columns: str
    skip_header: bool | None
    model: str
    dimension: int
    margin: float
    norm: int
    clients: int
    split: Literal["entity", "relation", "triple"]
    overlap: float | None
    strategy: str
    aggregation: str
    fraction: float
    minimum_clients: int | None
    largest_row_norm: float
    rounds: int
    local_epochs: int
    local_steps: int
    optimiser: str
    optimiser_state: Literal["reset", "kept"]
    learning_rate: float
    learning_rate_decay: float
    batch_size: int
    negatives: int
    negative_group: int
    corrupt: Literal["tail", "head", "both"]
    filter_negatives: bool
    temperature: float
    regularisation: float
    defence: str
    epsilon: float | None
    delta: float | None
    allow_large_delta: bool
    noise: float | None
    clip: float
    row_clip: float | None
    normalise: bool
    private_negatives: Literal["inside", "public"]
    public_graph: str
    selection: str
    selection_share: float
    selection_threshold: float
    selection_rows: float
    test_failure: float
    noise_step: float
    noise_schedule: str
    noise_decay: float
    least_gain: float
    public_validation: str
    count_share: float
    copy_share: float
    sparse_share: float
    count_types: int
    count_weight: float
    public_triples: int
    names: Literal["from-triples", "listed", "threshold"]
    names_share: float
    public_init: bool
    accountant: Literal["pld", "rdp"]
    noise_seed: int | None
    evaluate_every: int
    validation_triples: int
    patience: int
    keep_leaked: bool
    record: str
    canaries: int
    canary_coins: Literal["half", "independent", "seeded"]
    canary_source: Literal["shared", "victim", "rare", "likely", "real"]
    victim: str
    adversary: str
    inline_attack: Literal["none", "cia"]
    seed: int | None
    threads: int
    init: str
