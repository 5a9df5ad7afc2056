/*
 * trajectory.h - the record of what a model sampled and saw, and its bytes: the
 * `record` field of the trajectory message (docs/trajectory.md).
 *
 * A record holds one or more traces. A trace is three flat arrays of equal length
 * (token_ids u32, mask u8: 1 = sampled by the policy, logprobs f32: 0 where mask
 * is 0) and a table of turns that covers it without gaps. A new trace starts only
 * where the prompt could not be extended id for id; `reason` says why.
 *
 * Bytes: a MessagePack map {version, agent, template_digest, tokenizer_digest, logprobs_mode,
 * end, truncated, attempt, traces: [...], messages: [...], sandbox: {...}, tamper: {...},
 * noted: {...}} (trajectory.def). Older
 * versions are read too, and are of RECORD_VERSION once read: what they did not have is unknown or empty, but for their
 * traces, which have the record's template_digest, and for their last replies, which count as sampled.
 * Each array is a map {codec: "raw"|"lz4", length: bytes when raw, data: bin} of
 * little-endian values; lz4 is the LZ4 block format, used when it helps.
 */
#ifndef SLUICE_SCHEMAS_TRAJECTORY_TRAJECTORY_H
#define SLUICE_SCHEMAS_TRAJECTORY_TRAJECTORY_H

#include "schemas/labels.h"
#include "schemas/messages/message.h"

/* Of one record, all its traces together. */
enum {
    RECORD_VERSION = 4,
    RECORD_TOKENS_MAX = 1 << 22,
    RECORD_TURNS_MAX = 4096,
    RECORD_TRACES_MAX = 1024,
    RECORD_MESSAGES_MAX = 16384,
    RECORD_SPANS_MAX = 256,              /* of a turn */
    RECORD_COLUMNS_MAX = 16,             /* of a trace */
    RECORD_DIMENSIONS_MAX = 4,           /* of a column's row */
    RECORD_COLUMN_BYTES_MAX = 256 << 20, /* of all columns together, unpacked */
    RECORD_BREACHES_MAX = 32,
    RECORD_TOUCHED_MAX = 64,
    RECORD_BYTES_MAX = 64 << 20 /* encoded */
};

/* A time that not every engine tells; all zero bytes: it is not known. */
struct record_seconds {
    bool is_known;
    double value;
};

/* A run of a turn's tokens that one version of the policy sampled. */
struct record_span {
    uint32_t offset, length; /* in tokens, within the turn */
    char version[64];
};

/* As the engine was asked. */
struct record_sampling {
    double temperature, top_p, min_p;
    uint32_t top_k, max_tokens; /* top_k 0: off */
    int64_t seed;               /* -1: none, the engine's choice */
};

struct record_turn {
    uint32_t offset, length;               /* in tokens, within its trace */
    char role[16];                         /* "prompt", "assistant", "user" or "tool" */
    char finish[16];                       /* assistant: "stop", "length", "abort"; else "" */
    char masked[LABEL_SIZE];               /* assistant: the label (labels.def) for which its mask is 0; "": none */
    char engine[256];                      /* assistant: who sampled it; else "" */
    char version[64];                      /* assistant: the policy version, "" when unknown */
    uint32_t prompt_tokens, cached_tokens; /* assistant: as the engine reported */
    double seconds;                        /* model call or tool call */
    struct record_seconds queue_seconds, prefill_seconds, decode_seconds; /* of it, as the engine said */
    struct record_sampling *sampling; /* assistant: NULL where it is not known; owned */
    struct record_span *versions; /* assistant: where `version` joins several; else none; they cover the turn; owned */
    size_t version_count, version_capacity;
};

struct record_shape {
    uint32_t count; /* 0: a row is one value */
    uint32_t sizes[RECORD_DIMENSIONS_MAX];
};

struct record_values {
    void *data; /* little-endian; owned */
    size_t bytes;
};

/*
 * A column more, by name: what some engines tell and some trainers want of a trace's tokens, a row for each from
 * `offset` on. A row is of the given shape; with `counts`, it is so many of these.
 */
struct record_extra {
    char name[64]; /* a to z, 0 to 9 and _, a letter first; each once in a trace */
    char type[8];  /* "u8", "i8", "u16", "i16", "u32", "i32", "f16" or "f32" */
    uint32_t offset, rows;
    struct record_shape shape;
    struct record_values counts; /* u32, one for each row; all zero: each row is one */
    struct record_values values;
};

/* Runs of the record's messages, each behind the one before. */
struct record_stretch {
    uint32_t offset, length;
};
struct record_stretches {
    struct record_stretch *runs;
    size_t count, capacity;
};

struct record_trace {
    uint32_t *token_ids;
    uint8_t *mask;
    float *logprobs;
    size_t token_count, token_capacity;
    struct record_turn *turns;
    size_t turn_count, turn_capacity;
    struct record_extra *columns;
    size_t column_count, column_capacity;
    struct record_stretches messages; /* a harness's: what was said in it, its replies included; else none */
    char reason[128];                 /* why this trace started, "" for the first */
    char label[LABEL_SIZE];           /* a harness's: what it is (labels.def); else "" */
    char template_digest[80], tokenizer_digest[80]; /* of the engine that it started on */
};

struct record_message {  /* for people; tokens are the truth */
    char *role;          /* "system", "user", "assistant", "tool"; "note": a handler's, which the model was not shown */
    char *content;       /* UTF-8 */
    char *tool;          /* tool: its name and its arguments, e.g. "bash: ls -l"; else NULL */
    int32_t exit_status; /* tool: the command's */
    bool sampled;        /* assistant: the policy said it; else it was given with the task, as an example is */
};

/* How often the agent went over one of its limits. */
struct record_breach {
    char limit[16]; /* a name of limits.def */
    uint32_t count;
};

/* What the agent's sandbox used; peaks are of what was seen, ten times a second. */
struct record_sandbox {
    uint64_t peak_memory_kib;
    uint32_t peak_processes; /* threads included */
    uint64_t peak_disk_bytes, peak_inodes;
    double cpu_seconds;
    uint32_t commands, timed_out;
    uint64_t output_bytes, cut_bytes; /* cut: of those, what was left out */
    struct record_breach *breaches;
    size_t breach_count, breach_capacity;
};

/* A file of the agent's that decides what runs when an evaluator runs. */
struct record_touched {
    char what[16];  /* a word of tamper.def */
    char path[256]; /* from the root, without its slash; cut where it is longer */
};

struct record_tamper {
    uint64_t count;               /* of all */
    struct record_touched *files; /* the first of each kind */
    size_t file_count, file_capacity;
};

struct record_metric {
    char name[64];
    double value;
};

/* What handlers noted while the agent worked; metrics of a verdict hide those of the same names. */
struct record_noted {
    struct record_metric *metrics; /* each name once (verdict.h) */
    size_t metric_count, metric_capacity;
};

struct record {
    uint32_t version;                               /* RECORD_VERSION, by record_init */
    char agent[104];                                /* a kind, or NAME@VERSION of a handler's */
    char template_digest[80], tokenizer_digest[80]; /* as the engine last told; "" unknown */
    char logprobs_mode[32];                         /* "raw", "processed" or "unknown": of the engine's distribution */
    char end[16];     /* how the agent ended, as a code (docs/trajectory.md); "" unknown */
    bool truncated;   /* a limit on tokens cut it off */
    uint32_t attempt; /* of this run: how often the stage was handed out; 0 unknown */
    struct record_trace *traces;
    size_t trace_count, trace_capacity;
    struct record_message *messages;
    size_t message_count, message_capacity;
    struct record_sandbox *sandbox; /* NULL when the agent had none */
    struct record_tamper *tamper;   /* NULL when it touched nothing of the kind */
    struct record_noted *noted;     /* NULL when nobody noted a metric */
};

void record_init(struct record *record);
void record_finish(struct record *record);

/*
 * Starts a trace, whose digests are the record's; false when out of memory or beyond
 * RECORD_TRACES_MAX. `reason` fits or is cut.
 */
bool record_start_trace(struct record *record, const char *reason);
/*
 * Appends one turn to the last trace: `count` ids, all with the same mask bit.
 * logprobs may be NULL (zeros). turn->offset and ->length are filled in here, and what it points to is copied.
 * False when out of memory or beyond RECORD_TOKENS_MAX / RECORD_TURNS_MAX.
 */
bool record_append(struct record *record, const struct record_turn *turn, const uint32_t *token_ids,
                   const float *logprobs, size_t count, bool sampled);
/*
 * Copies its texts; `tool` may be NULL. Invalid UTF-8 and NUL become U+FFFD. False when out
 * of memory or beyond RECORD_MESSAGES_MAX.
 */
bool record_say(struct record *record, const char *role, struct slice content, const char *tool, int exit_status);

/* What the policy said, as the assistant. */
bool record_say_sampled(struct record *record, struct slice content);

/* Behind those that are there, joined where they continue them; false when out of memory. Nothing for a length of 0. */
bool record_stretches_add(struct record_stretches *stretches, size_t offset, size_t length);

/* With copies of what it points to; false when out of memory. record_turn_finish frees these, and is
 * idempotent. */
bool record_turn_copy(struct record_turn *to, const struct record_turn *from);
void record_turn_finish(struct record_turn *turn);

/* What was sampled in all traces together: turns of the assistant's, and their tokens. */
struct record_sampled {
    uint64_t turns, tokens;
    const struct record_turn *last; /* of the main conversation, where traces have labels; NULL: there is none */
};
struct record_sampled record_sampled(const struct record *record);

/* Copies it, for the trace's tokens so far; false when out of memory or beyond RECORD_COLUMNS_MAX. */
bool record_add_column(struct record_trace *trace, const struct record_extra *column);
/* Bytes of one value of that type; 0: there is no such type. */
size_t record_type_size(const char *type);

/* The record's sandbox, all 0 when it is new; NULL when out of memory. */
struct record_sandbox *record_add_sandbox(struct record *record);
/* Nothing for a count of 0; false when out of memory. */
bool record_add_breach(struct record_sandbox *sandbox, const char *limit, uint32_t count);

/* The record's tamper, nothing in it when it is new; NULL when out of memory. */
struct record_tamper *record_add_tamper(struct record *record);
/* Repairs and cuts `path`; false when out of memory or beyond RECORD_TOUCHED_MAX. */
bool record_add_touched(struct record_tamper *tamper, const char *what, const char *path);

/* Lengths equal, turns covering, mask 0/1, logprobs finite and 0 where mask is 0. */
bool record_check(const struct record *record, struct refusal *no);
/* Both check. decode: the caller calls record_finish, also after a refusal. */
bool record_encode(const struct record *record, struct buffer *out, struct refusal *no);
bool record_decode(struct slice bytes, struct record *ret, struct refusal *no);

#endif
