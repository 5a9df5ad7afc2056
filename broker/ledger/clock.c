/*
 * The ledger's own clock: it begins as the wall clock of the first start, and goes on by as much time
 * as has passed. By it is written how old what the ledger holds is, so that a step of the wall clock,
 * while a broker runs or between two, makes nothing older than it is.
 */
#include "broker/ledger/inner.h"

static const struct {
    const char *name;
    size_t offset;
} parts[] = {{"clock_wall_ms", offsetof(struct moment, wall_ms)},
             {"clock_boot_ms", offsetof(struct moment, boot_ms)},
             {"clock_boot", offsetof(struct moment, boot)}};
enum { PART_COUNT = sizeof(parts) / sizeof(*parts) };

static const char clock_name[] = "clock_ms";

static int read_number(struct ledger *ledger, const char *name, int64_t *ret, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_GET_HIGHEST, VALUES(TEXT(slice_from_str(name))), fail);
    if (code < 0)
        return code;
    *ret = ledger_number(ledger, LEDGER_GET_HIGHEST, 0);
    ledger_reset(ledger, LEDGER_GET_HIGHEST);
    return 0;
}

int ledger_start_clock(struct ledger *ledger, const struct moment *now, int64_t *ret_clock_ms, struct fail *fail)
{
    struct moment then = {0};
    int64_t clock_ms = 0;
    int code = read_number(ledger, clock_name, &clock_ms, fail);
    for (int i = 0; code == 0 && i < PART_COUNT; i++) {
        int64_t value = 0;
        code = read_number(ledger, parts[i].name, &value, fail);
        memcpy((char *)&then + parts[i].offset, &value, sizeof(value));
    }
    if (code)
        return code;
    clock_ms = clock_ms > 0 ? clock_ms + moment_passed(&then, now) : now->wall_ms;
    code = ledger_note_clock(ledger, now, clock_ms, fail);
    if (code == 0)
        code = ledger_sync(ledger, fail);
    if (code == 0)
        *ret_clock_ms = clock_ms;
    return code;
}

int ledger_note_clock(struct ledger *ledger, const struct moment *now, int64_t clock_ms, struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    if (code == 0)
        code = ledger_do(ledger, LEDGER_SET_META, fail, TEXT(slice_from_str(clock_name)), NUMBER(clock_ms));
    for (int i = 0; code == 0 && i < PART_COUNT; i++) {
        int64_t value;
        memcpy(&value, (const char *)now + parts[i].offset, sizeof(value));
        code = ledger_do(ledger, LEDGER_SET_META, fail, TEXT(slice_from_str(parts[i].name)), NUMBER(value));
    }
    return code ? code : ledger_end(ledger, fail);
}
