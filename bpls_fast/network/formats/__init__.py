"""File formats of networks: npz, safetensors, ONNX, PyTorch modules, C headers.

Every format writes `Parts` and reads `Parts`; `methods.py` has the methods of `Network` that call them. Files are
data: nothing in them is executed, no other file is opened, and no memory is allocated for what a file only claims.
"""
