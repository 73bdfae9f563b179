"""The embedded server: llama.cpp's own HTTP server over a small model, in a process of its own.

`python -m tinyserve` finds weights (`weights`), loads them into the C++ server that the package `xllamacpp`
brings along (`server`), prints one JSON line that says where it listens, and ends when it is told to or when its
parent is gone (`lifetime`). It imports nothing of `tinyeval`: the two know each other only over HTTP.
"""
