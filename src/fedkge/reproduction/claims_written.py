"""What the paper says that no cell decides: answered by a proof, by arithmetic, or by reading the paper itself."""

from __future__ import annotations

from fedkge.reproduction.claims import Answer, Claim

PUBLISHED = "docs/proofs/published.md"
PTR = "docs/proofs/ptr.md"
ATTACK = "docs/how-to/attack-a-run.md#who-attacks"
MEASURED = "benchmarks/README.md"
HOLDS: Answer = "holds"
FAILS: Answer = "does not hold"
OPEN: Answer = "cannot be tested"

_TEXTS: tuple[tuple[str, str, str, Answer, str, str], ...] = (
    (
        "first-study",
        "Abstract",
        "the first holistic study of the privacy threat on FKGE",
        OPEN,
        "Who was first is a matter of record and not of measurement; we know of no earlier one.",
        f"{PUBLISHED}#what-we-would-say-in-its-favour",
    ),
    (
        "tight-accountant",
        "Abstract",
        "comes with a tight privacy accountant",
        FAILS,
        "One batch is amplified as if it were two, and orders outside its lemma's range are needed for small "
        "epsilon. For 1,406 steps at q = 64/90,000 the printed formulas give 5.77 where the sound form of the "
        "same structure costs 1.00.",
        PUBLISHED,
    ),
    (
        "first-rigorous",
        "Section 1",
        "the first rigorous differentially private FKGE mechanism",
        FAILS,
        "Relation embeddings are trained on raw gradients and shape every later upload, so the printed mechanism "
        "has no guarantee at any epsilon; an adversary who sees the iterates told 200 of 200 canaries "
        "apart at an accounted epsilon of 0.",
        PUBLISHED,
    ),
    (
        "two-million",
        "Section 1",
        "TransE has about two million parameters on FB15k-237 with an embedding dimension of 128",
        HOLDS,
        "14,541 entities and 237 relations times 128 are 1.89 million.",
        "method",
    ),
    (
        "others-not-rigorous",
        "Section 1",
        "earlier differentially private KGE (Han et al., Peng et al.) is not rigorous",
        OPEN,
        "Those works are not rebuilt here. The argument against the first is right: which rows of an upload moved "
        "names the entities of the batch, and the attacks here count such rows.",
        ATTACK,
    ),
    (
        "three-data-sets",
        "Section 1",
        "evaluations on three real-world KG datasets and four FKGE models",
        FAILS,
        "The paper's own Section 5 and tables have two, FB15k-237 and NELL-995. The four models are there.",
        "method",
    ),
    (
        "federation-helps",
        "Section 2.1",
        "federated learning can further improve embeddings of all participating KGs",
        FAILS,
        "On three clients of FB15k-237 averaging helps TransE (.317 against .310 alone) and RotatE (.318, .316) "
        "and hurts DistMult (.217, .233) and ComplEx (.236, .257): both-sided MRR, one seed, nothing tuned for "
        "it.",
        f"{MEASURED}#results-utility",
    ),
    (
        "overlap-seen",
        "Section 3.3",
        "only embeddings of overlapping entities change in the aggregation, which identifies them",
        HOLDS,
        "By construction: the mean of a row that one client owns is that row. CIP here finds the overlap in this way.",
        ATTACK,
    ),
    (
        "cip-extraction",
        "Section 3.3",
        "the victim's embedding is (N E_b - E_u)/(N - 1), with N the number of clients",
        FAILS,
        "N has to be the number of owners of that row. With three clients and two owners the formula returns a "
        "quarter of the adversary's own row and three quarters of the victim's. Here N is the number of owners.",
        ATTACK,
    ),
    (
        "relations-approach",
        "Section 3.3",
        "local relation embeddings contain more and more of the victim's relations",
        OPEN,
        "Relations are never exchanged, and no cell compares them by round. After training the median cosine "
        "between both clients' rows is .58 (TransE), .25 (RotatE), .34 (DistMult) and .35 (ComplEx) on FB15k-237.",
        f"{MEASURED}#results-attacks",
    ),
    (
        "lower-score",
        "Section 3.3",
        "a lower score indicates that the target triple is more likely to exist",
        FAILS,
        "Section 2.1 says the opposite, and so do the score functions of the appendix: higher is more plausible. "
        "The attacks here take higher.",
        ATTACK,
    ),
    (
        "one-percent",
        "Section 4.1",
        "for TransE on FB15k-237 with a batch size of 64, only 1 % are active gradient elements",
        HOLDS,
        "64 triples touch at most 128 of 14,505 entity rows, 0.9 %; of one client's 7,000 rows it is 1.8 %. "
        "Negatives are not counted: 256 of them touch more rows than the batch.",
        "docs/proofs/adafest.md",
    ),
    (
        "triple-neighbours",
        "Section 4.1",
        "node- and edge-neighbours do not suit KGE: neighbours differ in one triple",
        HOLDS,
        "A definition, and the one used here. Somebody with k triples has k times the epsilon, which the paper "
        "does not say.",
        "docs/threat-model.md#what-it-does-not-cover",
    ),
    (
        "one-shot",
        "Section 4.2",
        "PTR selects k rows at one shot, where others compose k times",
        HOLDS,
        "One test covers the whole set, at one price. That the alternatives cannot be accounted tightly is not "
        "tested here.",
        PTR,
    ),
    (
        "k-in-range",
        "Section 4.2",
        "the actual number of active rows should be within [B, 2B]",
        FAILS,
        "Not as a bound: B is the mean size of a Poisson batch, which may be smaller or larger, and triples share "
        "entities. It is a fair guess that costs no privacy.",
        f"{PTR}#the-step",
    ),
    (
        "no-extra-budget",
        "Section 4.2",
        "the test may fail, but no extra privacy budget is consumed by a step that is discarded",
        FAILS,
        "Whether a step passes depends on the very batch that the charge is about; every step has to be charged "
        "in full.",
        f"{PTR}#why-it-does-not-learn",
    ),
    (
        "random-negatives",
        "Section 4.2",
        "the gradient of completely random negatives can be released without perturbation",
        HOLDS,
        "Steps on negatives from public lists are post-processing. It does not carry over to relations, which "
        "take raw gradients of positives too.",
        "docs/proofs/dense.md#what-costs-nothing",
    ),
    (
        "negatives-impair",
        "Section 4.2",
        "utility is impaired by random negatives; real head-relation pairs of a public dataset are the fix",
        OPEN,
        "The public graph that the paper used is not named, so its fix cannot be repeated. Here negatives inside "
        "the clipped gradient replace them.",
        "docs/how-to/train-privately.md#negatives",
    ),
    (
        "public-validation",
        "Section 4.3",
        "noise may follow validation on a public dataset; else a predefined decay",
        HOLDS,
        "A decay is public and composes exactly; noise that follows public validation needs a filter, which the "
        "paper does not have. The cells here use the decay.",
        "docs/proofs/composition.md#when-noise-depends-on-what-was-seen-the-filter",
    ),
    (
        "lemma-gradient",
        "Section 4.4",
        "Lemma 1: the gradient steps satisfy RDP with 2 q² alpha/sigma",
        FAILS,
        "The lemma that it rests on has sigma², and holds for few orders only. At sigma = 1 both agree, below the "
        "print is too small.",
        PUBLISHED,
    ),
    (
        "theorem-selection",
        "Section 4.4",
        "Theorem 1: the private selection satisfies approximate RDP with alpha/(8 sigma_r²) + alpha/(2 sigma_p²)",
        FAILS,
        "One triple can raise one row and lower another, so the gap has sensitivity min(2 C2, √2 C1) and not C2, "
        "and the arg max has range 1.5/sigma_r and not 1/sigma_r.",
        f"{PTR}#lemma-1-what-one-triple-can-change",
    ),
    (
        "theorem-composition",
        "Section 4.4",
        "Theorem 2: T iterations satisfy (ε, δ)-DP, the gradient charged only if the test passes",
        FAILS,
        "Selection and gradient use one batch and must be composed before they are amplified; charging by the "
        "result of the test is not valid; and the relations are not covered at all.",
        f"{PUBLISHED}",
    ),
    (
        "nell-counts",
        "Appendix",
        "NELL-995 has 14505 entities, 237 relations, and 154213 triples",
        FAILS,
        "154,213 triples is right; entities and relations repeat those of FB15k-237. NELL-995 has 75,492 and 200.",
        "method",
    ),
    (
        "fb-counts",
        "Appendix",
        "FB15k-237 has 237 relations, 14505 entities, and 310116 triples",
        HOLDS,
        "14,505 entities occur in its training triples, 14,541 in all. Hence names that were never trained on are "
        "left out of the as-published column.",
        "method",
    ),
    (
        "small-budgets",
        "Appendix",
        "the preset ε varies in {2, 4, 8, …}, tracked with the parameters above",
        FAILS,
        "Within the orders that Lemma 1 allows (up to 3 at q = 64/90,000, sigma = 1) epsilon at δ 1e-5 cannot "
        "fall below 5.7. The cells at 2 and 4 use orders that the lemma excludes.",
        PUBLISHED,
    ),
    (
        "overall-delta",
        "Appendix",
        "the overall δ is 1e-5",
        OPEN,
        "Theorem 2 has T δ_t + δ, and δ_t is not printed. Here δ_t is 1e-8, so that T δ_t stays of that size.",
        "method",
    ),
    (
        "collusion",
        "Appendix",
        "a colluding server frees SI of its auxiliary data, and CIP and CIA of the overlap",
        HOLDS,
        "The attacks with a colluding server are part of fedkge. With the victim's raw upload a client's best F1 "
        "is .751 (DistMult) and .784 (ComplEx) on FB15k-237, above CIP's own.",
        f"{MEASURED}#results-attacks",
    ),
)

WRITTEN = tuple(
    Claim(name, where, says, answer, reason, "", evidence, "") for name, where, says, answer, reason, evidence in _TEXTS
)
