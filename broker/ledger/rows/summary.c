/*
 * What scheduling needs of a task, in one column of its group's row: flags, numbers, and texts with their length before
 * them. A number has seven bits a byte, the lowest first; each byte but the last has the eighth bit set. One column
 * is read in a quarter of the time of the thirteen it stands for, and a start may read a million.
 */
#include "broker/ledger/inner.h"

enum { NEEDS_ENGINE = 1, READS_RECORD = 2, NUMBER_BYTES_MAX = 10 };

struct packing {
    uint8_t *bytes;
    size_t len, size; /* len > size: it did not fit */
};

static void put_number(struct packing *to, uint64_t number)
{
    do {
        const uint8_t low = number & 0x7f;
        number >>= 7;
        if (to->len < to->size)
            to->bytes[to->len] = number ? low | 0x80 : low;
        to->len++;
    } while (number);
}

static void put_text(struct packing *to, struct slice text)
{
    put_number(to, text.len);
    if (text.len && to->len <= to->size && text.len <= to->size - to->len)
        memcpy(to->bytes + to->len, text.data, text.len);
    to->len += text.len;
}

struct slice ledger_summary_pack(const struct core_task *task, uint8_t *ret, size_t size)
{
    struct packing to = {ret, 0, size};
    const struct slice texts[] = {
        task->id, task->image, task->policy, task->needs[STAGE_RUN], task->needs[STAGE_EVAL], task->judge};
    put_number(&to, (task->needs_engine ? NEEDS_ENGINE : 0u) | (task->reads_record ? READS_RECORD : 0u));
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
        put_number(&to, (uint64_t)task->limit_ms[stage]);
    put_number(&to, (uint64_t)task->total_ms);
    put_number(&to, task->bytes);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        put_text(&to, texts[i]);
    return to.len <= size ? slice_of(ret, to.len) : slice_of(NULL, 0);
}

/* At the end, or where it makes no sense, `bytes` becomes NULL, and all that is read after it 0. */
static uint64_t take_number(struct slice *from)
{
    uint64_t number = 0;
    for (size_t at = 0; at < from->len && at < NUMBER_BYTES_MAX; at++) {
        number |= (uint64_t)(from->data[at] & 0x7f) << 7 * at;
        if (from->data[at] < 0x80) {
            *from = slice_of(from->data + at + 1, from->len - at - 1);
            return number;
        }
    }
    *from = slice_of(NULL, 0);
    return 0;
}

static struct slice take_text(struct slice *from)
{
    const uint64_t len = take_number(from);
    if (!from->data || len > from->len) {
        *from = slice_of(NULL, 0);
        return *from;
    }
    struct slice text = slice_of(len ? from->data : NULL, (size_t)len);
    *from = slice_of(from->data + len, from->len - (size_t)len);
    return text;
}

bool ledger_summary_unpack(struct slice bytes, struct core_task *ret)
{
    const uint64_t flags = take_number(&bytes);
    ret->needs_engine = flags & NEEDS_ENGINE;
    ret->reads_record = flags & READS_RECORD;
    for (unsigned stage = 0; stage < STAGE_COUNT; stage++)
        ret->limit_ms[stage] = (int64_t)take_number(&bytes);
    ret->total_ms = (int64_t)take_number(&bytes);
    ret->bytes = take_number(&bytes);
    ret->id = take_text(&bytes);
    ret->image = take_text(&bytes);
    ret->policy = take_text(&bytes);
    ret->needs[STAGE_RUN] = take_text(&bytes);
    ret->needs[STAGE_EVAL] = take_text(&bytes);
    ret->judge = take_text(&bytes);
    return bytes.data && !bytes.len && ret->id.len;
}
