#!/usr/bin/env python3
"""Writes a quantized GGUF model with its weights in 16-bit floating point.

    python3 -m pip install gguf
    gguf_unpack.py MODEL.gguf UNPACKED.gguf

Such a model computes the same, but for rounding, whatever else is in a batch; a quantized one does not, since its
activations are rounded to 8 bits on the way (docs/verify.md).
"""
import sys

import gguf
import numpy


def copy_field(writer, field):
    kind = field.types[0]
    inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
    writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)


def main(source, target):
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field(gguf.Keys.General.ARCHITECTURE).contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in (gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.FILE_TYPE):
            copy_field(writer, field)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        wide = values.ndim == 1  # norms stay in 32 bits, as engines expect
        writer.add_tensor(tensor.name, values.astype(numpy.float32 if wide else numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
