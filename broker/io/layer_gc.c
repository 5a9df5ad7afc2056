/* The layer GC: begun, and what became of the store told to the core and to the log. */
#include "broker/io/inner.h"

#include <stdio.h>

#include "common/base/log.h"

enum { LOOK_PERIOD_MS = 1000 };

int io_start_layer_gc(struct io *io, const struct io_options *options, struct fail *fail)
{
    if (!options->store_dir)
        return 0;
    if (!io->ledger_dir) {
        log_event(LOG_WARN, "broker.store-off",
                  "store=%s why=\"no ledger says what is needed\" "
                  "action=nothing-deleted",
                  options->store_dir);
        return 0;
    }
    return layer_gc_start(&io->layer_gc,
                          &(struct layer_gc_options){.dir = options->store_dir,
                                                     .data_dir = io->ledger_dir,
                                                     .grace_ms = options->store_grace_ms},
                          fail);
}

static void say(const struct layer_gc_view *before, const struct layer_gc_view *now)
{
    if (now->freed_layers != before->freed_layers)
        log_event(LOG_INFO, "broker.store-freed", "layers=%llu bytes=%llu left_layers=%llu",
                  (unsigned long long)(now->freed_layers - before->freed_layers),
                  (unsigned long long)(now->freed_bytes - before->freed_bytes), (unsigned long long)now->layers);
    if (now->error.code != before->error.code && now->error.code)
        log_event(LOG_WARN, "broker.store-error", "text=\"%s\" action=tries-again", now->error.text);
}

void io_watch_layer_gc(struct io *io, int64_t now_ms)
{
    static const char *const words[] = {
        [LAYER_GC_SILENT] = "silent", [LAYER_GC_REFUSED] = "refused", [LAYER_GC_TENDED] = "tended"};
    struct layer_gc_view view;
    if (!io->layer_gc || now_ms < io->layer_gc_look_ms)
        return;
    io->layer_gc_look_ms = now_ms + LOOK_PERIOD_MS;
    layer_gc_see(io->layer_gc, &view);
    say(&io->layer_gc_seen, &view);
    io->layer_gc_seen = view;
    struct core_store told = {.state = words[view.state],
                              .layers = view.layers,
                              .bytes = view.bytes,
                              .freed_layers = view.freed_layers,
                              .freed_bytes = view.freed_bytes};
    snprintf(told.error, sizeof(told.error), "%.255s", view.error.text);
    core_tell_store(io->core, &told);
}
