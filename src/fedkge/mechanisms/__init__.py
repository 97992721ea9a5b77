"""All randomness that privacy rests on: sampling, clipping, selection, noise, and the events that account for them."""
