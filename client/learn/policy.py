"""The policy as a torch model, and one step of DAPO on it (arXiv 2503.14476).

The loss is the token mean of -min(r A, clip(r, 0.8, 1.28) A), where A is the rollout's advantage in its group and
r = exp(log p now - log p when it was sampled). The latter are the trajectories' own log-probabilities: nothing is computed
twice, and r says at each step's start how exact they are.
"""
import os

import torch
from sluice.batch import as_torch, to_batch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

CLIP_LOW, CLIP_HIGH = 0.2, 0.28


def load_model(gguf, layers):
    """In 32 bits, the last `layers` to be trained; an ordinary model, that trainers do not take for a quantized one."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder, file = os.path.split(gguf)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)
    model.is_quantized = False
    del model.hf_quantizer, model.config.quantization_config
    model.requires_grad_(False)
    for layer in model.model.layers[-layers:]:
        layer.requires_grad_(True)
    return model


def load_tokenizer(gguf):
    """Of SmolLM2, with its chat template. What transformers makes of the file does not take digits one by one, as the model does."""
    folder, file = os.path.split(gguf)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return tokenizer


class Policy:
    def __init__(self, gguf, layers, rate, seed):
        torch.manual_seed(seed)
        self.model = load_model(gguf, layers)
        self.trained = {name: values for name, values in self.model.named_parameters() if values.requires_grad}
        self.optimizer = torch.optim.AdamW(self.trained.values(), lr=rate, betas=(0.9, 0.95), weight_decay=0.0)

    def step(self, groups):
        """One update by groups of (trace, advantage) pairs. Returns what is worth knowing of it.

        difference: mean |log p now - log p when sampled| of the sampled tokens before the update, difference_max: the largest;
        ratio: mean of r.
        """
        self.optimizer.zero_grad()
        tokens = sum(int(trace.mask.sum()) for group in groups for trace, _ in group)
        difference = difference_max = ratio = loss = 0.0
        for group in groups:
            traces, values = zip(*group)
            rows = as_torch(to_batch(traces, values))
            ids, mask, old, advantage = rows["ids"], rows["mask"].float(), rows["logprobs"], rows["advantages"]
            first = int(mask.any(0).nonzero()[0])
            kept = ids.shape[1] - first + 1  # the logits at `first - 1` are those of the token at `first`
            logits = self.model(ids, logits_to_keep=kept).logits[:, :-1]
            now = logits.log_softmax(-1).gather(2, ids[:, first:, None])[:, :, 0]
            mask, old, advantage = mask[:, first:], old[:, first:], advantage[:, first:]
            apart = (now - old) * mask
            r = apart.exp()
            gain = torch.minimum(r * advantage, r.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH) * advantage)
            part = -(gain * mask).sum() / tokens
            part.backward()
            loss += part.item()
            difference_max = max(difference_max, apart.detach().abs().max().item())
            difference += apart.detach().abs().sum().item() / tokens
            ratio += (r.detach() * mask).sum().item() / tokens
        norm = torch.nn.utils.clip_grad_norm_(self.trained.values(), 1.0).item()
        self.optimizer.step()
        return {"loss": loss, "difference": difference, "difference_max": difference_max, "ratio": ratio, "gradient": norm, "tokens": tokens}

    def save(self, path, progress):
        """All that a step changes, whole or not at all, also where the power fails."""
        with open(path + ".new", "wb") as file:
            torch.save({"progress": progress, "trained": self.trained, "optimizer": self.optimizer.state_dict()}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)

    def restore(self, path):
        """The progress that was saved; None: there is none."""
        if not os.path.exists(path):
            return None
        saved = torch.load(path, weights_only=True)
        with torch.no_grad():
            for name, values in self.trained.items():
                values.copy_(saved["trained"][name])
        self.optimizer.load_state_dict(saved["optimizer"])
        return saved["progress"]
