/* What begins and ends each transaction. */
#include "broker/ledger/inner.h"

static int run(struct ledger *ledger, enum ledger_statement statement, struct fail *fail)
{
    int code = ledger_ask(ledger, statement, NULL, 0, fail);
    return code < 0 ? code : 0;
}

int ledger_begin(struct ledger *ledger, struct fail *fail)
{
    int code = ledger_mind_syncs(ledger, fail);
    ledger_release(ledger);
    return code ? code : run(ledger, LEDGER_BEGIN, fail);
}

/* A row that is still being read would keep the log from being brought home. */
int ledger_end(struct ledger *ledger, struct fail *fail)
{
    ledger_release(ledger);
    return run(ledger, LEDGER_COMMIT, fail);
}
