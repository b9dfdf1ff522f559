"""Other methods of training: gradient methods of PyTorch, and what users of scikit-learn would try first."""
