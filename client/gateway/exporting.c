#include "client/gateway/exporting.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/gateway/api/status_streams.h"
#include "client/gateway/api/tail.h"
#include "client/lib/stream/trajectory_view.h"
#include "common/base/cleanup.h"

enum { LOOK_MS = 2000, WAIT_MS = 5000, STREAMS_MAX = 1024 };

struct exported_stream {
    struct list link;
    struct exporting *exporting;
    char name[80];
    struct tail_reader reader;
    uint64_t ended_ms, told_ms; /* when the last ended; up to when all were told, of a ledger that was replaced */
};

struct exporting {
    struct loop *loop;
    struct identity *identity;
    struct tails *tails;
    struct otlp_exporter *exporter;
    struct loop_timer *look;
    struct caller_ask ask;
    struct list streams;
    size_t stream_count;
    bool has_looked; /* streams that appear from then on are told from their beginning */
};

/* ---- what ends ----------------------------------------------------------------------------------- */

static void on_end(void *arg, struct told *told)
{
    struct exported_stream *stream = arg;
    struct trajectory_view view = {0};
    struct refusal no;
    if (told->message->ended_ms > stream->ended_ms)
        stream->ended_ms = told->message->ended_ms;
    if (told->message->ended_ms > stream->told_ms && trajectory_view_read(&view, told->message, &no))
        otlp_exporter_add(stream->exporting->exporter, &view.out);
    trajectory_view_finish(&view);
}

/* What an older back-up has was told before; what ended since it came back has other times. */
static uint64_t on_replaced(void *arg, const struct msg_stream_head *head)
{
    struct exported_stream *stream = arg;
    stream->told_ms = stream->ended_ms;
    return head->first;
}

static void drop(struct exported_stream *stream)
{
    tail_leave(&stream->reader);
    list_remove(&stream->link);
    stream->exporting->stream_count--;
    free(stream);
}

/* It is found again by the next look. */
static void on_failed(void *arg, const struct msg_refused *refused)
{
    (void)refused;
    drop(arg);
}

/* ---- which streams there are --------------------------------------------------------------------------- */

static bool follows(const struct exporting *exporting, const char *name)
{
    const struct exported_stream *stream;
    LIST_EACH(stream, &exporting->streams, link)
        if (strcmp(stream->name, name) == 0)
            return true;
    return false;
}

/* Streams that were there before are told from their head on, later ones from their beginning. */
static void follow(void *arg, const char *name, uint64_t first, uint64_t head)
{
    struct exporting *exporting = arg;
    const uint64_t from = exporting->has_looked ? 0 : head + 1;
    (void)first;
    struct exported_stream *stream = NULL;
    if (exporting->stream_count == STREAMS_MAX || strlen(name) >= sizeof(stream->name) || follows(exporting, name) ||
        !(stream = calloc(1, sizeof(*stream))))
        return;
    const struct reader_plan plan = {.took = on_end, .failed = on_failed, .replaced = on_replaced, .arg = stream};
    stream->exporting = exporting;
    snprintf(stream->name, sizeof(stream->name), "%s", name);
    list_push_back(&exporting->streams, &stream->link);
    exporting->stream_count++;
    if (!tail_read(exporting->tails, exporting->identity, name, from, &plan, &stream->reader))
        drop(stream);
}

static void on_status(void *arg, const struct answer *answer)
{
    struct exporting *exporting = arg;
    if (!answer || answer->id != MSG_status)
        return;
    status_streams_each(answer->as.status.json, follow, exporting);
    exporting->has_looked = true;
}

static void on_look(void *arg)
{
    struct exporting *exporting = arg;
    struct caller *caller = exporting->identity->caller;
    struct refusal no;
    exporting->look = loop_after(exporting->loop, LOOK_MS, on_look, exporting);
    if (exporting->ask.caller)
        return;
    const struct msg_status_get in = {.tag = caller_next_tag(caller)};
    exporting->ask.answered = on_status;
    exporting->ask.arg = exporting;
    caller_ask(caller, &exporting->ask, MSG_status_get, &in, in.tag, WAIT_MS, &no);
}

/* ---- all of it --------------------------------------------------------------------------------------------- */

struct exporting *exporting_open(struct loop *loop, struct identities *identities, const char *url, struct fail *fail)
{
    struct exporting *exporting = calloc(1, sizeof(*exporting));
    if (!exporting) {
        fail_memory(fail);
        return NULL;
    }
    exporting->loop = loop;
    exporting->identity = identities_own(identities);
    list_init(&exporting->streams);
    exporting->exporter = otlp_exporter_create(url, fail);
    exporting->tails = exporting->exporter ? tails_open(loop) : NULL;
    if (!exporting->tails)
        exporting_close(&exporting);
    else
        on_look(exporting);
    return exporting;
}

void exporting_close(struct exporting **handle)
{
    struct exporting *exporting = take_ptr(handle);
    struct exported_stream *stream;
    if (!exporting)
        return;
    loop_cancel(exporting->loop, &exporting->look);
    caller_forget(&exporting->ask);
    LIST_EACH(stream, &exporting->streams, link)
        drop(stream);
    if (exporting->tails)
        tails_close(&exporting->tails);
    otlp_exporter_destroy(&exporting->exporter);
    free(exporting);
}

void exporting_counts(struct exporting *exporting, struct otlp_counts *ret)
{
    otlp_exporter_counts(exporting->exporter, ret);
}
