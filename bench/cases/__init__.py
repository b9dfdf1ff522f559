"""What is compared: kernels, training and prediction at given sizes, and the same computation in other libraries."""
