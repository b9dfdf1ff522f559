"""Training: the paper's algorithms in `bpls`, refined sweeps in `refined`, and what they share."""
