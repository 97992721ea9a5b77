"""No defence: clients train on their triples as they are, promise nothing and keep no ledger."""
