/* ledger.backup: the core only asks for it; the I/O side answers when the copy is on disk. */
#include "broker/core/clients/backup.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

void handle_ledger_backup(struct core *core, const struct call *call)
{
    const struct msg_ledger_backup *in = call->in;
    if (!name_is_valid(in->name)) {
        send_refused(core, call, REFUSAL_BAD_NAME, "name", 0,
                     "a backup's name holds no '/', blank or control character");
        return;
    }
    struct slice client = effect_copy(core, call->client), name = effect_copy(core, in->name);
    struct effect *effect = effect_push(core, BACK_UP);
    effect->client = client;
    effect->tag = call->tag;
    effect->detail = name;
}
