/*
 * trajectories - what a trajectory costs on its way, and a subscriber that only reads.
 *
 *     trajectories codec COUNT                     COUNT times each, by size: "VALUE WHAT" lines
 *     trajectories record TOKENS                   such a record's bytes, to standard output
 *     trajectories subscribe FRONT STREAM COUNT    reads COUNT trajectories from the stream's beginning with
 *                                                  the client library; says "ready", then "all", or what is wrong
 *
 * A record here is an agent's: a prompt, then turn about what the policy sampled (TURN tokens, each with its
 * log-probability) and what a tool answered (as many, without).
 */
#include <errno.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/sluice.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "schemas/trajectory/trajectory.h"

enum { TURN = 500, VOCABULARY = 151936 };

static const size_t sizes[] = {1000, 30000, 100000};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "trajectories: %s: %s\n", what, why);
    exit(1);
}

/* ---- a record ----------------------------------------------------------------------------------------- */

static uint64_t state = 42;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

/* Low ids are common in text, high ones rare. */
static uint32_t draw_id(void) { return draw(4) ? draw(VOCABULARY / 16) : draw(VOCABULARY); }

static void make_record(struct record *record, size_t tokens)
{
    uint32_t ids[TURN];
    float logprobs[TURN];
    record_init(record);
    snprintf(record->agent, sizeof(record->agent), "bash");
    snprintf(record->logprobs_mode, sizeof(record->logprobs_mode), "raw");
    bool made = record_start_trace(record, "");
    for (size_t done = 0, turns = 0; made && done < tokens; turns++) {
        size_t count = tokens - done < TURN ? tokens - done : TURN;
        bool sampled = turns % 2 == 1;
        struct record_turn turn = {.seconds = 1};
        snprintf(turn.role, sizeof(turn.role), "%s", turns == 0 ? "prompt" : sampled ? "assistant" : "tool");
        snprintf(turn.finish, sizeof(turn.finish), "%s", sampled ? "stop" : "");
        for (size_t i = 0; i < count; i++) {
            ids[i] = draw_id();
            logprobs[i] = -(float)draw(1 << 20) / (1 << 18);
        }
        made = record_append(record, &turn, ids, sampled ? logprobs : NULL, count, sampled);
        done += count;
    }
    if (!made)
        die("a record", "out of memory");
}

/* ---- what it costs ------------------------------------------------------------------------------------ */

struct sample {
    struct record record;
    struct buffer arrays, packed, bytes, message, back;
};

/* The three arrays one after the other: what there is to encode, and to copy at the least. */
static void put_arrays(struct sample *sample)
{
    const struct record_trace *trace = &sample->record.traces[0];
    buffer_clear(&sample->arrays);
    buffer_append(&sample->arrays, trace->token_ids, trace->token_count * sizeof(*trace->token_ids));
    buffer_append(&sample->arrays, trace->mask, trace->token_count);
    buffer_append(&sample->arrays, trace->logprobs, trace->token_count * sizeof(*trace->logprobs));
}

static void compress(struct sample *sample)
{
    int room = LZ4_compressBound((int)sample->arrays.len);
    buffer_clear(&sample->packed);
    if (!buffer_reserve(&sample->packed, (size_t)room))
        die("LZ4", "out of memory");
    int len = LZ4_compress_default((const char *)sample->arrays.data, (char *)sample->packed.data,
                                   (int)sample->arrays.len, room);
    sample->packed.len = (size_t)len;
}

static void decompress(struct sample *sample)
{
    if (!buffer_reserve(&sample->back, sample->arrays.len) ||
        LZ4_decompress_safe((const char *)sample->packed.data, (char *)sample->back.data, (int)sample->packed.len,
                            (int)sample->arrays.len) < 0)
        die("LZ4", "does not come back");
}

static void encode(struct sample *sample)
{
    struct refusal no;
    buffer_clear(&sample->bytes);
    if (!record_encode(&sample->record, &sample->bytes, &no))
        die("encode", no.text);
}

static void publish(struct sample *sample)
{
    struct refusal no;
    struct msg_trajectory message = {.stream = slice_from_str("bench"),
                                     .seq = 1,
                                     .rollout = slice_from_str("bench/0"),
                                     .group = slice_from_str("bench"),
                                     .task = slice_from_str("bench"),
                                     .outcome = slice_from_str("ok"),
                                     .trainable = true,
                                     .record = buffer_peek(&sample->bytes),
                                     .has_record = true};
    buffer_clear(&sample->message);
    if (!message_encode(MSG_trajectory, &message, &sample->message, &no))
        die("publish", no.text);
}

static void decode(struct sample *sample)
{
    struct refusal no;
    struct record record;
    struct msg_trajectory message;
    if (!message_decode(MSG_trajectory, buffer_peek(&sample->message), &message, &no) ||
        !record_decode(message.record, &record, &no))
        die("decode", no.text);
    record_finish(&record);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const struct {
    const char *what;
    void (*step)(struct sample *sample);
} steps[] = {
    {"record made of its arrays and compressed", encode},
    {"floor of that: the arrays copied", put_arrays},
    {"floor of that: the arrays through LZ4", compress},
    {"message made around it", publish},
    {"message and record read", decode},
    {"floor of that: the arrays back from LZ4", decompress},
};

static void measure_step(struct sample *sample, size_t tokens, size_t i, size_t count, int64_t *ns)
{
    for (size_t k = 0; k < count; k++) {
        int64_t start_ns = clock_ns();
        steps[i].step(sample);
        ns[k] = clock_ns() - start_ns;
    }
    qsort(ns, count, sizeof(*ns), compare);
    double us = (double)ns[count / 2] / 1000;
    printf("%.2f %zu tokens: %s, us\n", us, tokens, steps[i].what);
    printf("%.0f %zu tokens: %s, MB/s\n", (double)sample->arrays.len / us, tokens, steps[i].what);
}

static void measure_codec(size_t count)
{
    AUTO_FREE int64_t *ns = calloc(count, sizeof(*ns));
    if (!ns || count == 0)
        die("codec", "no count, or out of memory");
    for (size_t size = 0; size < sizeof(sizes) / sizeof(*sizes); size++) {
        struct sample sample = {0};
        make_record(&sample.record, sizes[size]);
        put_arrays(&sample);
        encode(&sample);
        printf("%zu %zu tokens: the arrays, bytes\n", sample.arrays.len, sizes[size]);
        printf("%zu %zu tokens: the record, bytes\n", sample.bytes.len, sizes[size]);
        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
            measure_step(&sample, sizes[size], i, count, ns);
        struct buffer *buffers[] = {&sample.arrays, &sample.packed, &sample.bytes, &sample.message, &sample.back};
        for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++)
            buffer_finish(buffers[i]);
        record_finish(&sample.record);
    }
}

static void write_record(size_t tokens)
{
    struct sample sample = {0};
    make_record(&sample.record, tokens);
    encode(&sample);
    if (fwrite(sample.bytes.data, 1, sample.bytes.len, stdout) != sample.bytes.len || fflush(stdout))
        die("standard output", strerror(errno));
    buffer_finish(&sample.bytes);
    record_finish(&sample.record);
}

/* ---- a subscriber ------------------------------------------------------------------------------------- */

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

static void subscribe(const char *url, const char *stream, uint64_t count)
{
    struct sluice_client *client = sluice_connect(url);
    if (!client || sluice_subscribe(client, stream, 1))
        die("subscribe", client ? sluice_error(client) : "out of memory");
    say("ready");
    for (uint64_t seq = 1; seq <= count; seq++) {
        const struct sluice_trajectory *trajectory;
        if (sluice_next(client, 300000, &trajectory))
            die("next", sluice_error(client));
        if (trajectory->seq != seq || trajectory->trace_count != 1)
            die("next", "another trajectory than the next one");
    }
    say("all");
    sluice_close(&client);
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    if (strcmp(role, "codec") == 0 && argc == 3) {
        measure_codec((size_t)atol(argv[2]));
    } else if (strcmp(role, "record") == 0 && argc == 3) {
        write_record((size_t)atol(argv[2]));
    } else if (strcmp(role, "subscribe") == 0 && argc == 5) {
        subscribe(argv[2], argv[3], (uint64_t)atoll(argv[4]));
    } else {
        fprintf(stderr, "usage: trajectories codec COUNT | record TOKENS | subscribe FRONT STREAM COUNT\n");
        return 2;
    }
    return 0;
}
