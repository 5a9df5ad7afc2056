#!/usr/bin/env python3
"""Writes the tokenizer of a GGUF model as a tokenizer.json, as Hugging Face's tokenizers have it.

    gguf_tokenizer.py MODEL.gguf > tokenizer.json

For byte-level BPE whose pre-tokenizer is in the table below, by the name that GGUF gives it.
"""
import json
import struct
import sys

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4  # token types

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def split(regex):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
        dict(BYTE_LEVEL, use_regex=False)]}


PRE_TOKENIZERS = {
    "gpt-2": dict(BYTE_LEVEL, use_regex=True),
    "smollm": {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True}, dict(BYTE_LEVEL, use_regex=True)]},
    "llama-bpe": split(LLAMA3),
    "qwen2": split(LLAMA3.replace("{1,3}", "")),
}


def read(file, form):
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def read_string(file):
    return file.read(read(file, "<Q")).decode()


def read_value(file, kind):
    if kind == STRING:
        return read_string(file)
    if kind == ARRAY:
        kind, count = read(file, "<I"), read(file, "<Q")
        return [read_value(file, kind) for _ in range(count)]
    return read(file, SCALARS[kind])


def read_metadata(path):
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF" or read(file, "<I") not in (2, 3):
            sys.exit(f"{path}: not a GGUF file of version 2 or 3")
        read(file, "<Q")  # tensors
        values = {}
        for _ in range(read(file, "<Q")):
            key = read_string(file)
            values[key] = read_value(file, read(file, "<I"))
        return values


def convert(values):
    pre = values.get("tokenizer.ggml.pre", "gpt-2")
    if values.get("tokenizer.ggml.model") != "gpt2" or pre not in PRE_TOKENIZERS:
        sys.exit(f"no byte-level BPE that is known here: {values.get('tokenizer.ggml.model')}, {pre}")
    tokens, types = values["tokenizer.ggml.tokens"], values["tokenizer.ggml.token_type"]
    added = [{"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": types[id] == CONTROL}
             for id, token in enumerate(tokens) if types[id] in (CONTROL, USER_DEFINED)]
    return {"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": PRE_TOKENIZERS[pre],
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "byte_fallback": False, "ignore_merges": pre == "llama-bpe",
                      "vocab": {token: id for id, token in enumerate(tokens)},
                      "merges": values["tokenizer.ggml.merges"]}}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    json.dump(convert(read_metadata(sys.argv[1])), sys.stdout, ensure_ascii=False)
