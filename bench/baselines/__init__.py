"""What our training is compared with: gradient methods of PyTorch, and what scikit-learn's users would try first."""
