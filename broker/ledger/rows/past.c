/* The ids of groups that were here: which there are, and what is left of one when all else is forgotten. */
#include "broker/ledger/inner.h"

#include <errno.h>

#include "common/digest/digest.h"

enum { ID_DIGEST_SIZE = 16 };

static int digest_id(struct slice id, uint8_t ret[DIGEST_RAW_SIZE], struct fail *fail)
{
    return digest_raw(id, ret) ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

int ledger_find_past(struct ledger *ledger, struct slice id, uint64_t *ret_hash, struct fail *fail)
{
    uint8_t digest[DIGEST_RAW_SIZE];
    int code = digest_id(id, digest, fail);
    if (code == 0)
        code = ledger_ask(ledger, LEDGER_FIND_PAST_GROUP, VALUES(TEXT(id), BLOB(slice_of(digest, ID_DIGEST_SIZE))),
                          fail);
    if (code <= 0)
        return code;
    *ret_hash = (uint64_t)ledger_number(ledger, LEDGER_FIND_PAST_GROUP, 0);
    ledger_reset(ledger, LEDGER_FIND_PAST_GROUP);
    return 1;
}

/* The one under OLDEST_FORGOTTEN_GROUP. */
static int make_past(struct ledger *ledger, struct fail *fail)
{
    enum ledger_statement oldest = LEDGER_OLDEST_FORGOTTEN_GROUP;
    uint8_t digest[DIGEST_RAW_SIZE];
    int64_t number = ledger_number(ledger, oldest, 0);
    int code = digest_id(ledger_slice(ledger, oldest, 1), digest, fail);
    if (code == 0)
        code = ledger_do(ledger, LEDGER_ADD_PAST_GROUP, fail, BLOB(slice_of(digest, ID_DIGEST_SIZE)),
                         NUMBER(ledger_number(ledger, oldest, 2)), NUMBER(ledger_number(ledger, oldest, 3)));
    ledger_reset(ledger, oldest);
    return code ? code : ledger_do(ledger, LEDGER_TRIM_GROUP, fail, NUMBER(number));
}

int ledger_trim_group(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_ask(ledger, LEDGER_OLDEST_FORGOTTEN_GROUP, VALUES(NUMBER(ledger->forgotten_max)), fail);
    return code > 0 ? make_past(ledger, fail) : code;
}
