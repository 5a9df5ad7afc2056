/*
 * call.h - one JSON request to an inference server, and what its refusals mean. Shared by
 * dialects; awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_DIALECTS_CALL_H
#define SLUICE_WORKERS_ENGINES_DIALECTS_CALL_H

#include <jansson.h>

#include "common/json/json_doc.h"
#include "workers/runtime/http.h"

static inline void cleanup_json(json_t **json) { json_decref(*json); }
#define AUTO_JSON __attribute__((cleanup(cleanup_json)))

enum { CALL_ANSWER_MAX = 1 << 24 };

struct call {
    struct http *http;
    struct http_line *line; /* NULL: any connection */
    const char *base, *path;
    json_t *body;                     /* NULL: `text` */
    const char *text;                 /* JSON that is written already; NULL too: GET */
    int64_t timeout_ms;               /* of this call; the fiber's deadline still holds */
    size_t answer_max;                /* bytes; 0: CALL_ANSWER_MAX */
    int64_t *ret_pause_ms;            /* set when a refusal says when to come back (Retry-After); or NULL */
    const struct http_hearer *hearer; /* of an answer as it comes, which is not returned then; or NULL */
};

/*
 * 0 with *ret (the caller's) when the answer is JSON with a status of 200. Else the errors of
 * engine.h, by status and by the server's own words.
 */
int call_json(const struct call *call, json_t **ret, struct fail *fail);

/*
 * The same with the answer's text, whatever it is (buffer_finish it): for answers too long for a
 * DOM of many small pieces (dirtree.h).
 */
int call_text(const struct call *call, struct buffer *ret, struct fail *fail);

/* An answer that is read as a document, and the text that the document points into. */
struct call_answer {
    struct buffer text;
    struct json_doc doc;
};
void call_answer_finish(struct call_answer *answer);
#define AUTO_CALL_ANSWER __attribute__((cleanup(call_answer_finish))) struct call_answer

int call_tree(const struct call *call, struct call_answer *ret, struct fail *fail);

/* The error of a status and body; also used by tests on recorded bodies. */
int call_refusal(long status, const json_t *body, struct fail *fail);
/* What the server itself said, of a fail that was made so with -EINVAL, whatever stands before it by now. */
const char *call_refused_words(const struct fail *fail);

#endif
