"""What a tokenizer is known by, so that a trainer can tell whether trajectories are of its own."""

from __future__ import annotations

import hashlib
from typing import Callable, Sequence

import numpy as np

# The same as in schemas/tokenizer_sample.c. It never changes: digests are kept.
SAMPLE = (
    "The quick brown fox can't jump over 13 lazy dogs; they've slept since 1998-07-05 (about 10:30).\n"
    "    def area(self, r=2.5):\n        return math.pi * r ** 2  # != 0x1F\n"
    "\tif (a[i] >= b->next && !done) { printf(\"%d\\n\", x++); }\r\n"
    "{\"name\": \"bash\", \"arguments\": {\"cmd\": \"ls -la /tmp | grep '^d' > out.txt 2>&1\"}}\n\n\n"
    "https://example.org/a_b?q=1&r=%20#top  user@host.net  CamelCaseWords SCREAMING_SNAKE  … — “quoted”\n"
    "Über Straße, naïve café, łódź, İstanbul, tiếng Việt, αβγ Ω, русский язык\n"
    "中文文本，日本語のテキスト、한국어 العربية עברית हिन्दी ไทย\n"
    "😀🚀 ❤ ½ ∑√∞ €100,000.00 3.14159e-10 1234567890 aaaaaaaa        zzz"
)


def tokenizer_digest(encode: Callable[[str], Sequence[int]]) -> str:
    """The digest that traces of this tokenizer have: of the ids it gives for SAMPLE.

    encode: from a text to its ids, without special tokens added: with Hugging Face's tokenizers
    lambda text: tokenizer.encode(text, add_special_tokens=False).
    """
    return "sha256:" + hashlib.sha256(np.asarray(encode(SAMPLE), dtype="<u4").tobytes()).hexdigest()
