"""Refined sweeps: closed-form steps of the hidden layers under an output layer that is always solved."""
