"""The paper's tables and figures again: which federations they need, how they are trained, and what came out."""
