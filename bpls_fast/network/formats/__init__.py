"""The forms in which a network leaves and comes back: npz, safetensors, ONNX, a PyTorch module, a C header.

Every one of them is made of `Parts` and read into `Parts`; the methods of `Network` are the way in. What is read is
data: nothing in a file is executed, no other file is opened, no memory is taken for what a file only claims to hold.
"""
