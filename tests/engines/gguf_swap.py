#!/usr/bin/env python3
"""Copies a GGUF model and lets two words of its vocabulary, of one length in bytes, change places.

    gguf_swap.py MODEL.gguf SWAPPED.gguf WORD OTHER

A blank before a word is written as in the file: "Ġhouse".
"""
import shutil
import struct
import sys

KEY = b"tokenizer.ggml.tokens"


def find_words(data):
    """{word: where its bytes begin}"""
    at = data.index(struct.pack("<Q", len(KEY)) + KEY) + 8 + len(KEY)
    kind, inner, count = struct.unpack_from("<IIQ", data, at)
    if (kind, inner) != (9, 8):
        sys.exit("its vocabulary is no array of words")
    at, words = at + 16, {}
    for _ in range(count):
        length, = struct.unpack_from("<Q", data, at)
        words[data[at + 8 : at + 8 + length]] = at + 8
        at += 8 + length
    return words


def main(source, target, *words):
    one, other = (word.encode() for word in words)
    shutil.copyfile(source, target)
    with open(target, "r+b") as file:
        places = find_words(file.read(1 << 25))
        if len(one) != len(other) or one not in places or other not in places:
            sys.exit("these are no two words of one length in its vocabulary")
        for word, place in ((one, places[other]), (other, places[one])):
            file.seek(place)
            file.write(word)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
