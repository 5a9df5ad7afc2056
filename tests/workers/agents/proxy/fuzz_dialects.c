/*
 * What harnesses send: the first byte chooses the dialect, the rest is the body's bytes. It is refused with words, or
 * what is read of it is whole; and a turn that it holds can be told in every dialect.
 */
#include "tests/workers/agents/proxy/body_checks.h"
#include "workers/agents/proxy/dialects/json_body.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_json(data, size, max_size, 1, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fail fail = {0};
    json_t *body = size > 0 ? json_body_parse(slice_of(data + 1, size - 1), &fail) : NULL;
    must(body || size == 0 || (fail.code == -EINVAL && is_text(fail.text)));
    if (body)
        check_body(dialect_named(dialect_names[data[0] % DIALECT_NAMES]), body);
    json_decref(body);
    return 0;
}
