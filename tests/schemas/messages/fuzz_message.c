/*
 * Any bytes: they are refused, or are a message that can be sent on and reads the same again.
 * The first run begins from every golden message.
 */
#include "common/base/cleanup.h"
#include "schemas/messages/example.h"
#include "tests/fuzz.h"

/* Now and then begins again from an example, so that deep fields are reached. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    AUTO_BUFFER golden = {0};
    if (seed % 16 == 0 && message_example(seed / 16 % MESSAGE_COUNT, &golden, NULL) && golden.len <= max_size) {
        memcpy(data, golden.data, golden.len);
        size = golden.len;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

static void walk_jobs(const struct jobs *jobs)
{
    struct job_ref ref;
    size_t at = 0;
    uint32_t count = 0;
    while (jobs_next(jobs, &at, &ref))
        count++;
    must(count == jobs->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum message_id id;
    struct refusal no = {0};
    if (!message_peek(slice_of(data, size), &id, &no)) {
        must(no.reason != REFUSAL_NONE);
        return 0;
    }
    const struct message *message = message_get(id);
    AUTO_FREE uint8_t *read = malloc(message->size), *again = malloc(message->size);
    AUTO_BUFFER bytes = {0}, twice = {0};
    must(read && again);
    if (!message_decode(id, slice_of(data, size), read, &no)) {
        must(no.reason != REFUSAL_NONE && no.text[0]);
        return 0;
    }
    must(message_encode(id, read, &bytes, &no) && message_decode(id, buffer_peek(&bytes), again, &no) &&
         message_encode(id, again, &twice, &no) && slice_equal(buffer_peek(&bytes), buffer_peek(&twice)));
    if (id == MSG_worker_beat)
        walk_jobs(&((struct msg_worker_beat *)read)->jobs);
    return 0;
}
