"""The trainer's tokenizer as a server's /tokenize and /detokenize use it."""

from __future__ import annotations

from typing import Any, Container, Dict, List, Mapping, Optional

from ..errors import BadArgument

WANTED = {"encode": "(text, add_special_tokens=...)", "decode": "(ids, skip_special_tokens=...)",
          "apply_chat_template": "(messages, tokenize=False, add_generation_prompt=True)"}


class Text:
    """A tokenizer of transformers, or of the same three calls."""

    def __init__(self, tokenizer: Any, template_options: Mapping[str, Any]) -> None:
        for name, arguments in WANTED.items():
            if not callable(getattr(tokenizer, name, None)):
                raise BadArgument(f"the tokenizer has no {name}{arguments}: give a bridge one of transformers, or with "
                                  "the same calls", "tokenizer")
        self._tokenizer, self._template_options = tokenizer, dict(template_options)
        # What some tokenizers leave out would be missing from what agents read.
        cleans = hasattr(tokenizer, "clean_up_tokenization_spaces")
        self._decode_options: Dict[str, Any] = {"clean_up_tokenization_spaces": False} if cleans else {}

    def encode(self, text: str, special: bool) -> List[int]:
        """Names of special tokens become those; special: what the tokenizer puts around a text is added."""
        return [int(id) for id in self._tokenizer.encode(text, add_special_tokens=special)]

    def decode(self, ids: List[int], skips_special: bool = False) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=skips_special, **self._decode_options))

    def render(self, messages: List[Dict[str, Any]], generation: bool, special: bool) -> List[int]:
        """What the template makes of a conversation. It may raise what it likes."""
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=generation,
                                                   **self._template_options)
        return self.encode(text, special)

    def vocabulary(self) -> Optional[int]:
        """How many ids it has; None: it does not say."""
        return len(self._tokenizer) if hasattr(self._tokenizer, "__len__") else None

    def specials(self) -> Optional[Container[int]]:
        """None: it does not say."""
        ids = getattr(self._tokenizer, "all_special_ids", None)
        if ids is None:
            return None
        return frozenset(ids) | frozenset(getattr(self._tokenizer, "added_tokens_decoder", None) or {})
