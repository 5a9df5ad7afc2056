/* Any bytes: they are refused with a reason, or are a record that is written and read the same
 * again. */
#include "common/base/cleanup.h"
#include "schemas/trajectory/trajectory.h"
#include "tests/fuzz.h"

#define AUTO_RECORD __attribute__((cleanup(record_finish))) struct record

static void make_seed(struct buffer *out)
{
    AUTO_RECORD record;
    static const uint32_t ids[64] = {7, 8, 9};
    static const float logprobs[64] = {-1};
    static const struct record_turn given = {.role = "prompt"};
    static const struct record_turn said = {.role = "assistant",
                                            .finish = "stop",
                                            .seconds = 1,
                                            .queue_seconds = {true, 0.5},
                                            .decode_seconds = {true, 0.25}};
    record_init(&record);
    must(record_start_trace(&record, "") && record_append(&record, &given, ids, NULL, 3, false) &&
         record_append(&record, &said, ids, logprobs, 64, true) && record_start_trace(&record, "why") &&
         record_append(&record, &given, ids, NULL, 5, false) &&
         record_say(&record, "tool", slice_from_str("out"), "bash: ls", -1) && record_encode(&record, out, NULL));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    AUTO_BUFFER bytes = {0};
    if (seed % 8 == 0) {
        make_seed(&bytes);
        if (bytes.len <= max_size) {
            memcpy(data, bytes.data, bytes.len);
            size = bytes.len;
        }
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_RECORD record;
    struct refusal no = {0};
    if (!record_decode(slice_of(data, size), &record, &no)) {
        must(no.reason != REFUSAL_NONE && no.text[0]);
        return 0;
    }
    AUTO_RECORD again;
    AUTO_BUFFER bytes = {0}, twice = {0};
    must(record_check(&record, &no) && record_encode(&record, &bytes, &no));
    must(record_decode(buffer_peek(&bytes), &again, &no) && record_encode(&again, &twice, &no));
    must(slice_equal(buffer_peek(&bytes), buffer_peek(&twice)));
    return 0;
}
