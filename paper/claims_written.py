"""What the paper says that no cell decides: answered by a proof, by arithmetic, or by reading the paper itself."""

from __future__ import annotations

from paper.claims import Answer, Claim

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
        "nobody has studied these threats as a whole before",
        OPEN,
        "Who was first is a matter of record and not of measurement; we know of no earlier one.",
        f"{PUBLISHED}#what-we-would-say-in-its-favour",
    ),
    (
        "tight-accountant",
        "Abstract",
        "the defence has an accountant whose bound is tight",
        FAILS,
        "One batch is amplified as if it were two, and orders outside its lemma's range are needed for small "
        "epsilon. For 1,406 steps at q = 64/90,000 the printed formulas give 5.77 where the sound form of the "
        "same structure costs 1.00.",
        PUBLISHED,
    ),
    (
        "first-rigorous",
        "Section 1",
        "the mechanism is rigorously differentially private, the first such one for federated KGE",
        FAILS,
        "Relation embeddings are trained on raw gradients and shape every later upload, so the printed mechanism "
        "has no guarantee at any epsilon; an adversary who sees the iterates told 200 of 200 canaries "
        "apart at an accounted epsilon of 0.",
        PUBLISHED,
    ),
    (
        "two-million",
        "Section 1",
        "on FB15k-237 TransE with 128 dimensions has some two million parameters",
        HOLDS,
        "14,541 entities and 237 relations times 128 are 1.89 million.",
        "method",
    ),
    (
        "others-not-rigorous",
        "Section 1",
        "earlier private KGE (Han et al., Peng et al.) has no rigorous guarantee",
        OPEN,
        "Those works are not rebuilt here. The argument against the first is right: which rows of an upload moved "
        "names the entities of the batch, and the attacks here count such rows.",
        ATTACK,
    ),
    (
        "three-data-sets",
        "Section 1",
        "three data sets and four models are evaluated",
        FAILS,
        "Section 5 and the tables have two of them, FB15k-237 and NELL-995. All four models are there.",
        "method",
    ),
    (
        "federation-helps",
        "Section 2.1",
        "every client's embeddings gain by federating",
        FAILS,
        "On three clients of FB15k-237 averaging helps TransE (.317 against .310 alone) and RotatE (.318, .316) "
        "and hurts DistMult (.217, .233) and ComplEx (.236, .257): both-sided MRR, one seed, nothing tuned for "
        "it.",
        f"{MEASURED}#results-utility",
    ),
    (
        "overlap-seen",
        "Section 3.3",
        "aggregation moves only rows that several clients own, which shows a client the overlap",
        HOLDS,
        "By construction: the mean of a row that one client owns is that row. CIP here finds the overlap in this way.",
        ATTACK,
    ),
    (
        "cip-extraction",
        "Section 3.3",
        "with N clients the victim's row is (N E_b - E_u)/(N - 1)",
        FAILS,
        "N has to be the number of owners of that row. With three clients and two owners the formula returns a "
        "quarter of the adversary's own row and three quarters of the victim's. Here N is the number of owners.",
        ATTACK,
    ),
    (
        "relations-approach",
        "Section 3.3",
        "a client's relation rows come to hold ever more of the victim's",
        OPEN,
        "Relations are never exchanged, and no cell compares them by round. After training the median cosine "
        "between both clients' rows is .58 (TransE), .25 (RotatE), .34 (DistMult) and .35 (ComplEx) on FB15k-237.",
        f"{MEASURED}#results-attacks",
    ),
    (
        "lower-score",
        "Section 3.3",
        "the lower its score, the likelier a triple was trained on",
        FAILS,
        "Section 2.1 says the opposite, and so do the score functions of the appendix: higher is more plausible. "
        "The attacks here take higher.",
        ATTACK,
    ),
    (
        "one-percent",
        "Section 4.1",
        "a batch of 64 touches about 1 % of TransE's gradient on FB15k-237",
        HOLDS,
        "64 triples touch at most 128 of 14,505 entity rows, 0.9 %; of one client's 7,000 rows it is 1.8 %. "
        "Negatives are not counted: 256 of them touch more rows than the batch.",
        "docs/proofs/adafest.md",
    ),
    (
        "triple-neighbours",
        "Section 4.1",
        "graphs that differ in one triple are neighbours; notions by node or by edge do not suit KGE",
        HOLDS,
        "A definition, and the one used here. Somebody with k triples has k times the epsilon, which the paper "
        "does not say.",
        "docs/threat-model.md#what-it-does-not-cover",
    ),
    (
        "one-shot",
        "Section 4.2",
        "propose-test-release picks all k rows at once, where other selections compose k times",
        HOLDS,
        "One test covers the whole set, at one price. That the alternatives cannot be accounted tightly is not "
        "tested here.",
        PTR,
    ),
    (
        "k-in-range",
        "Section 4.2",
        "the number of active rows lies between B and 2B",
        FAILS,
        "Not as a bound: B is the mean size of a Poisson batch, which may be smaller or larger, and triples share "
        "entities. It is a fair guess that costs no privacy.",
        f"{PTR}#the-step",
    ),
    (
        "no-extra-budget",
        "Section 4.2",
        "a step that fails the test is thrown away and costs nothing more",
        FAILS,
        "Whether a step passes depends on the very batch that the charge is about; every step has to be charged "
        "in full.",
        f"{PTR}#why-it-does-not-learn",
    ),
    (
        "random-negatives",
        "Section 4.2",
        "gradients of purely random negatives need no noise",
        HOLDS,
        "Steps on negatives from public lists are post-processing. It does not carry over to relations, which "
        "take raw gradients of positives too.",
        "docs/proofs/dense.md#what-costs-nothing",
    ),
    (
        "negatives-impair",
        "Section 4.2",
        "random negatives cost utility; real pairs of head and relation from a public graph repair that",
        OPEN,
        "The public graph that the paper used is not named, so its fix cannot be repeated. Here negatives inside "
        "the clipped gradient replace them.",
        "docs/how-to/train-privately.md#negatives",
    ),
    (
        "public-validation",
        "Section 4.3",
        "noise may follow a public validation set, or else decay as set in advance",
        HOLDS,
        "A decay is public and composes exactly; noise that follows public validation needs a filter, which the "
        "paper does not have. The cells here use the decay.",
        "docs/proofs/composition.md#when-noise-depends-on-what-was-seen-the-filter",
    ),
    (
        "lemma-gradient",
        "Section 4.4",
        "Lemma 1: the gradient steps have RDP 2 q² alpha/sigma",
        FAILS,
        "The lemma that it rests on has sigma², and holds for few orders only. At sigma = 1 both agree, below the "
        "print is too small.",
        PUBLISHED,
    ),
    (
        "theorem-selection",
        "Section 4.4",
        "Theorem 1: the selection has approximate RDP alpha/(8 sigma_r²) + alpha/(2 sigma_p²)",
        FAILS,
        "One triple can raise one row and lower another, so the gap has sensitivity min(2 C2, √2 C1) and not C2, "
        "and the arg max has range 1.5/sigma_r and not 1/sigma_r.",
        f"{PTR}#lemma-1-what-one-triple-can-change",
    ),
    (
        "theorem-composition",
        "Section 4.4",
        "Theorem 2: T steps are (ε, δ)-DP, where a gradient is charged only if its test passed",
        FAILS,
        "Selection and gradient use one batch and must be composed before they are amplified; charging by the "
        "result of the test is not valid; and the relations are not covered at all.",
        f"{PUBLISHED}",
    ),
    (
        "nell-counts",
        "Appendix",
        "NELL-995: 154,213 triples, 14,505 entities and 237 relations",
        FAILS,
        "154,213 triples is right; entities and relations repeat those of FB15k-237. NELL-995 has 75,492 and 200.",
        "method",
    ),
    (
        "fb-counts",
        "Appendix",
        "FB15k-237: 310,116 triples, 14,505 entities and 237 relations",
        HOLDS,
        "14,505 entities occur in its training triples, 14,541 in all. Hence names that were never trained on are "
        "left out of the as-published column.",
        "method",
    ),
    (
        "small-budgets",
        "Appendix",
        "the same parameters serve budgets from 2 upwards",
        FAILS,
        "Within the orders that Lemma 1 allows (up to 3 at q = 64/90,000, sigma = 1) epsilon at δ 1e-5 cannot "
        "fall below 5.7. The cells at 2 and 4 use orders that the lemma excludes.",
        PUBLISHED,
    ),
    (
        "overall-delta",
        "Appendix",
        "δ is 1e-5 overall",
        OPEN,
        "Theorem 2 has T δ_t + δ, and δ_t is not printed. Here δ_t is 1e-8, so that T δ_t stays of that size.",
        "method",
    ),
    (
        "collusion",
        "Appendix",
        "if the server colludes, SI needs no auxiliary triples, and CIP and CIA no overlap",
        HOLDS,
        "The attacks with a colluding server are part of fedkge. With the victim's raw upload a client's best F1 "
        "is .751 (DistMult) and .784 (ComplEx) on FB15k-237, above CIP's own.",
        f"{MEASURED}#results-attacks",
    ),
)

WRITTEN = tuple(
    Claim(name, where, says, answer, reason, "", evidence, "") for name, where, says, answer, reason, evidence in _TEXTS
)
