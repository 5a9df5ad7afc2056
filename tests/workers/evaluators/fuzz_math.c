/*
 * Two answers, apart by the first newline: what is found in a box lies inside its text, and
 * equality is the same from both sides. A bound on time is the fuzzer's own.
 */
#include "tests/fuzz.h"
#include "workers/evaluators/math/answer.h"

static void check_find(struct slice text)
{
    struct slice found;
    if (!math_answer_find(text, &found))
        return;
    must(found.len <= text.len);
    must(found.len == 0 || (found.data >= text.data && found.data + found.len <= text.data + text.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, '\n', size) : NULL;
    struct slice a = slice_of(data, cut ? (size_t)(cut - data) : size);
    struct slice b = cut ? slice_of(cut + 1, size - a.len - 1) : a;
    check_find(slice_of(data, size));
    check_find(a);
    bool equal = math_answer_equal(a, b);
    must(equal == math_answer_equal(b, a));
    must(equal == math_answer_equal(a, b));
    return 0;
}
