"""Import of GGUF files, llama.cpp's format of a model in one file, as models that train.

`convert.convert(source, target, progress)` is all that is used from outside. Imports no torch.
"""
