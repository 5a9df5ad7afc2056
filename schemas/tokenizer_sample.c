#include "schemas/tokenizer_sample.h"

const char tokenizer_sample[] =
    "The quick brown fox can't jump over 13 lazy dogs; they've slept since 1998-07-05 (about "
    "10:30).\n"
    "    def area(self, r=2.5):\n        return math.pi * r ** 2  # != 0x1F\n"
    "\tif (a[i] >= b->next && !done) { printf(\"%d\\n\", x++); }\r\n"
    "{\"name\": \"bash\", \"arguments\": {\"cmd\": \"ls -la /tmp | grep '^d' > out.txt "
    "2>&1\"}}\n\n\n"
    "https://example.org/a_b?q=1&r=%20#top  user@host.net  CamelCaseWords SCREAMING_SNAKE  … — "
    "“quoted”\n"
    "Über Straße, naïve café, łódź, İstanbul, tiếng Việt, αβγ Ω, русский язык\n"
    "中文文本，日本語のテキスト、한국어 العربية עברית हिन्दी ไทย\n"
    "😀🚀 ❤ ½ ∑√∞ €100,000.00 3.14159e-10 1234567890 aaaaaaaa        zzz";
