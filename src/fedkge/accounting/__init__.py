"""What mechanisms cost: accountants, calibration, the durable ledger, and the paper's formulas as published."""
