"""A torch model's weights in a GGUF file: written whole once, then those that are trained are patched in place.

Facts of the form: llama.cpp's rotary embedding pairs neighbouring rows, torch's the two halves of a head, so that the rows of q
and k lie in another order; norms are 32-bit floats whatever the file's type.
"""
import os

import gguf
import numpy as np

BLOCK = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
OTHERS = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}


def _name(torch_name):
    if torch_name in OTHERS:
        return OTHERS[torch_name]
    _, _, layer, rest = torch_name.split(".", 3)
    return f"blk.{layer}.{BLOCK[rest.removesuffix('.weight')]}.weight"


def _rows(config, torch_name, array):
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    count = next((heads[part] for part in heads if part in torch_name), None)
    if count is None:
        return array
    return array.reshape(count, 2, array.shape[0] // count // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def _tensors(model, names):
    """(name in the file, values) of the model's tensors of these names."""
    state = model.state_dict()
    for name in names:
        yield _name(name), _rows(model.config, name, state[name].detach().float().numpy())


def write(model, source, path):
    """All of the model, with the vocabulary and the settings of the GGUF file `source`."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path + ".new", reader.get_field("general.architecture").contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(name, field.contents(), kind,
                             sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    names = [name for name in model.state_dict() if name != "lm_head.weight"]  # tied to the embedding
    have = dict(_tensors(model, names))
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.ascontiguousarray(have[tensor.name], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.replace(path + ".new", path)


class Patch:
    """Writes the tensors that are trained into a file that write() made."""

    def __init__(self, path):
        self.path = path
        self.places = {tensor.name: (tensor.data_offset, tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors}

    def __call__(self, model):
        file = np.memmap(self.path, dtype=np.uint8, mode="r+")
        trained = [name for name, values in model.named_parameters() if values.requires_grad]
        for name, values in _tensors(model, trained):
            offset, size = self.places[name]
            patched = np.ascontiguousarray(values, dtype=np.float32).view(np.uint8).reshape(-1)
            assert patched.size == size, name
            file[offset:offset + size] = patched
        file.flush()
