/* Forgetting what is acknowledged, a few rows at a time. */
#include "broker/ledger/inner.h"

/* A group whose every rollout is forgotten, or whose id was taken again, goes for good. */
static int forget_group(struct ledger *ledger, int64_t number, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_IS_GROUP_FORGOTTEN, VALUES(NUMBER(number)), fail);
    if (code < 0)
        return code;
    bool is_there = code > 0;
    bool is_forgotten = is_there && ledger_number(ledger, LEDGER_IS_GROUP_FORGOTTEN, 0);
    if (is_forgotten)
        ledger_cache_drop(ledger, ledger_slice(ledger, LEDGER_IS_GROUP_FORGOTTEN, 1));
    ledger_reset(ledger, LEDGER_IS_GROUP_FORGOTTEN);
    if (is_there && !is_forgotten)
        return 0;
    code = ledger_do(ledger, LEDGER_FORGET_GROUP, fail, NUMBER(number));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_GROUP, fail, NUMBER(number));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_INIT, fail, NUMBER(number));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_FAILURES, fail, NUMBER(failures_of_init(number)));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_LEASE, fail, NUMBER(failures_of_init(number)));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_FORGOTTEN, fail, NUMBER(number));
    if (code == 0)
        code = ledger_trim_group(ledger, fail);
    return code;
}

static int forget_rollout(struct ledger *ledger, int64_t stream, int64_t seq, int64_t rollout, struct fail *fail)
{
    int code = ledger_do(ledger, LEDGER_DROP_END, fail, NUMBER(stream), NUMBER(seq));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_RUN, fail, NUMBER(rollout));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_FAILURES, fail, NUMBER(failures_of_rollout(rollout)));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_LEASE, fail, NUMBER(failures_of_rollout(rollout)));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_FORGET, fail, NUMBER(rollout));
    return code ? code : forget_group(ledger, rollout / ROLLOUTS_PER_GROUP, fail);
}

int ledger_sweep(struct ledger *ledger, unsigned limit, struct fail *fail)
{
    if (!ledger->sweep_due)
        return 0;
    int64_t stream = 0, first = 0;
    while (limit > 0) {
        int code = stream ? ledger_ask(ledger, LEDGER_DUE_END, VALUES(NUMBER(stream), NUMBER(first)), fail) : 0;
        if (code < 0)
            return code;
        if (code > 0) {
            int64_t seq = ledger_number(ledger, LEDGER_DUE_END, 0);
            int64_t rollout = ledger_number(ledger, LEDGER_DUE_END, 1);
            ledger_reset(ledger, LEDGER_DUE_END);
            code = forget_rollout(ledger, stream, seq, rollout, fail);
            if (code)
                return code;
            limit--;
            continue;
        }
        code = ledger_ask(ledger, LEDGER_DUE_STREAM, NULL, 0, fail);
        if (code <= 0) {
            ledger->sweep_due = code != 0;
            ledger->shrink_due = ledger->can_shrink;
            return code;
        }
        stream = ledger_number(ledger, LEDGER_DUE_STREAM, 0);
        first = ledger_number(ledger, LEDGER_DUE_STREAM, 1);
        ledger_reset(ledger, LEDGER_DUE_STREAM);
    }
    return 0;
}
