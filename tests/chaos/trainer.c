/*
 * trainer - trainer.py in C, with tasks that do no work: it submits without end, reads its stream
 * and may be killed at any instruction.
 *
 *     trainer DIRECTORY STREAM STOP_FILE
 *
 * The files in DIRECTORY and the end are those of trainer.py. $SLUICE_BROKER says where to connect.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/sluice.h"

enum { OPEN_MAX = 256, BATCH = 16, SAMPLES = 4, SAVE_EVERY = 64, LINE_MAX_BYTES = 512 };

static const char task[] = "{\"task\": \"noop\", \"kind\": \"noop\"}";

struct trainer {
    struct sluice_client *client;
    const char *stream, *stop;
    FILE *accepted, *log;
    uint64_t seq, read_count, accepted_count, next_number, intended, unsaved;
};

static void die(const char *what)
{
    fprintf(stderr, "trainer: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void make_durable(FILE *file)
{
    if (fflush(file) || fsync(fileno(file)))
        die("cannot save");
}

/* Opened to append after `offset` bytes; what follows them is cut off. */
static FILE *open_at(const char *path, long offset)
{
    FILE *file = fopen(path, "a");
    if (!file || ftruncate(fileno(file), offset))
        die(path);
    return file;
}

/* A small file's new content, there whole or not at all. */
__attribute__((format(printf, 3, 4))) static void replace(const char *name, const char *aside, const char *format, ...)
{
    va_list values;
    FILE *file = fopen(aside, "w");
    va_start(values, format);
    if (!file || vfprintf(file, format, values) < 0)
        die(aside);
    va_end(values);
    make_durable(file);
    fclose(file);
    if (rename(aside, name))
        die(name);
}

static void read_intent(struct trainer *trainer)
{
    FILE *file = fopen("intent", "r");
    if (file && fscanf(file, "%" SCNu64, &trainer->intended) != 1)
        die("the intent cannot be read");
    if (file)
        fclose(file);
}

static long read_cursor(struct trainer *trainer)
{
    FILE *file = fopen("cursor", "r");
    if (!file)
        return 0;
    long offset;
    if (fscanf(file, "[%" SCNu64 ", %ld, %" SCNu64 "]", &trainer->seq, &offset, &trainer->read_count) != 3)
        die("the cursor cannot be read");
    fclose(file);
    return offset;
}

/* A line that was cut short was not acknowledged to anybody. */
static long read_accepted(struct trainer *trainer)
{
    FILE *file = fopen("accepted", "r");
    char line[LINE_MAX_BYTES];
    long whole = 0;
    while (file && fgets(line, sizeof(line), file) && strchr(line, '\n')) {
        trainer->next_number++;
        trainer->accepted_count += SAMPLES;
        whole = ftell(file);
    }
    if (file)
        fclose(file);
    return whole;
}

static void save(struct trainer *trainer)
{
    if (trainer->unsaved == 0)
        return;
    make_durable(trainer->log);
    replace("cursor", "cursor.new", "[%" PRIu64 ", %ld, %" PRIu64 "]", trainer->seq, ftell(trainer->log),
            trainer->read_count);
    trainer->unsaved = 0;
    sluice_ack(trainer->client, trainer->stream, trainer->seq); /* the next one says it again */
}

/* What the broker did not take now is said again at the next call: it is still intended. */
static void submit_intended(struct trainer *trainer)
{
    struct sluice_group groups[BATCH];
    char names[BATCH][128];
    unsigned count = (unsigned)(trainer->intended - trainer->next_number);
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "%s-%" PRIu64 "-noop", trainer->stream, trainer->next_number + i);
        groups[i] = (struct sluice_group){
            .group = names[i], .stream = trainer->stream, .task_json = task, .samples = SAMPLES};
    }
    int failed = sluice_submit_many(trainer->client, groups, count);
    if (failed && failed != -ETIMEDOUT && failed != -EAGAIN) {
        fprintf(stderr, "trainer: %s\n", sluice_error(trainer->client));
        exit(1);
    }
    for (unsigned i = 0; i < count && groups[i].result == 0; i++) {
        fprintf(trainer->accepted, "%s %u\n", names[i], groups[i].accepted);
        trainer->next_number++;
        trainer->accepted_count += groups[i].accepted;
    }
    make_durable(trainer->accepted);
}

static void submit(struct trainer *trainer)
{
    trainer->intended = trainer->next_number + BATCH;
    replace("intent", "intent.new", "%" PRIu64, trainer->intended);
    submit_intended(trainer);
}

static void note(struct trainer *trainer, const struct sluice_trajectory *t)
{
    if (t->seq != trainer->seq + 1) {
        fprintf(stderr, "number %" PRIu64 " came after %" PRIu64 "\n", t->seq, trainer->seq);
        exit(1);
    }
    char reward[32] = "null";
    if (t->has_reward)
        snprintf(reward, sizeof(reward), "%g", t->reward);
    fprintf(trainer->log, "[%" PRIu64 ", \"%s\", \"%s\", %s, %s, 0]\n", t->seq, t->rollout, t->outcome, reward,
            t->trainable ? "true" : "false");
    trainer->seq++;
    trainer->read_count++;
    if (++trainer->unsaved >= SAVE_EVERY)
        save(trainer);
}

static void work(struct trainer *trainer)
{
    for (;;) {
        if (trainer->intended > trainer->next_number)
            submit_intended(trainer);
        bool is_stopping = access(trainer->stop, F_OK) == 0;
        uint64_t open = trainer->accepted_count - trainer->read_count;
        bool is_settled = trainer->intended <= trainer->next_number;
        if (is_stopping && is_settled && open == 0)
            return;
        if (!is_stopping && is_settled && open < OPEN_MAX)
            submit(trainer);
        const struct sluice_trajectory *t;
        int failed = sluice_next(trainer->client, 200, &t);
        if (!failed) {
            note(trainer, t);
        } else if (failed == -EAGAIN || failed == -ETIMEDOUT || failed == -EINTR) {
            save(trainer);
        } else {
            fprintf(stderr, "trainer: %s\n", sluice_error(trainer->client));
            exit(1);
        }
    }
}

/* A broker that is down for longer than the client's timeout is waited for. */
static void subscribe(struct trainer *trainer)
{
    int failed;
    do
        failed = sluice_subscribe(trainer->client, trainer->stream, trainer->seq + 1);
    while (failed == -ETIMEDOUT);
    if (failed) {
        fprintf(stderr, "trainer: %s\n", sluice_error(trainer->client));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: trainer DIRECTORY STREAM STOP_FILE\n");
        return 2;
    }
    struct trainer trainer = {.client = sluice_connect(NULL), .stream = argv[2], .stop = argv[3]};
    if (!trainer.client || (mkdir(argv[1], 0755) && errno != EEXIST) || chdir(argv[1]))
        die(argv[1]);
    trainer.log = open_at("log", read_cursor(&trainer));
    trainer.accepted = open_at("accepted", read_accepted(&trainer));
    read_intent(&trainer);
    if (trainer.intended > trainer.next_number + BATCH)
        die("the intent is not of these files");
    subscribe(&trainer);
    printf("trainer ready stream=%s seq=%" PRIu64 "\n", trainer.stream, trainer.seq);
    fflush(stdout);
    work(&trainer);
    save(&trainer);
    printf("trainer done seq=%" PRIu64 "\n", trainer.seq);
    fclose(trainer.log);
    fclose(trainer.accepted);
    sluice_close(&trainer.client);
    return 0;
}
