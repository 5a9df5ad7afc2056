/* Carrying out BACK_UP: one copy at a time, and the answer when it is there. */
#include "broker/io/inner.h"

#include <errno.h>

#include "common/base/log.h"

enum { BUSY_RETRY_MS = 5000 };

static int refuse_backup(struct io *io, struct slice client, uint64_t tag, enum refusal_reason reason, const char *text,
                         struct fail *fail)
{
    struct msg_refused refused = {.tag = tag,
                                  .request = slice_from_str(message_get(MSG_ledger_backup)->wire),
                                  .reason = slice_from_str(refusal_wire(reason)),
                                  .text = slice_from_str(text),
                                  .has_retry_after_ms = reason == REFUSAL_QUEUE_FULL,
                                  .retry_after_ms = BUSY_RETRY_MS};
    return io_answer(io, client, MSG_refused, &refused, fail);
}

int io_back_up(struct io *io, const struct effect *effect, struct fail *fail)
{
    struct fail why;
    if (io->backup)
        return refuse_backup(io, effect->client, effect->tag, REFUSAL_QUEUE_FULL,
                             "another backup is being made; try again when it is done", fail);
    if (!io->ledger_dir)
        return refuse_backup(io, effect->client, effect->tag, REFUSAL_BACKUP_FAILED,
                             "the broker runs with --durability none: there is no file to copy", fail);
    buffer_clear(&io->backup_client);
    int code = buffer_append(&io->backup_client, effect->client.data, effect->client.len)
                   ? backup_start(&io->backup, io->ledger_dir, effect->detail, io->disk_reserve_bytes, &why)
                   : fail_set(&why, -ENOMEM, "out of memory");
    if (code) {
        log_event(LOG_WARN, "broker.backup-failed", "name=%.*s text=\"%s\"", SLICE_ARG(effect->detail), why.text);
        return refuse_backup(io, effect->client, effect->tag, REFUSAL_BACKUP_FAILED, why.text, fail);
    }
    log_event(LOG_INFO, "broker.backup", "name=%.*s", SLICE_ARG(effect->detail));
    io->backup_tag = effect->tag;
    return 0;
}

int io_end_backup(struct io *io, struct fail *fail)
{
    struct slice client = buffer_peek(&io->backup_client);
    struct msg_done done = {.tag = io->backup_tag};
    struct fail why;
    if (backup_finish(&io->backup, &done.count, &why)) {
        log_event(LOG_WARN, "broker.backup-failed", "text=\"%s\"", why.text);
        return refuse_backup(io, client, done.tag, REFUSAL_BACKUP_FAILED, why.text, fail);
    }
    log_event(LOG_INFO, "broker.backup-done", "bytes=%llu", (unsigned long long)done.count);
    return io_answer(io, client, MSG_done, &done, fail);
}

void io_cancel_backup(struct io *io)
{
    if (!io->backup)
        return;
    backup_cancel(&io->backup);
    refuse_backup(io, buffer_peek(&io->backup_client), io->backup_tag, REFUSAL_BACKUP_FAILED,
                  "the broker was stopped before the copy was done", NULL);
}
