/* llama_reply_world.h - real answers of llama.cpp's server (fixtures/llama) as they are, or changed, and how they are
 * read. */
#ifndef SLUICE_TESTS_WORKERS_ENGINES_LLAMA_REPLY_WORLD_H
#define SLUICE_TESTS_WORKERS_ENGINES_LLAMA_REPLY_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/llama/llama_reply.h"

static inline json_t *fixture(const char *name)
{
    char path[512];
    const char *dir = getenv("SLUICE_SOURCE_DIR");
    snprintf(path, sizeof(path), "%s/tests/workers/fixtures/llama/%s.json", dir ? dir : ".", name);
    json_t *json = json_load_file(path, JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    return json;
}

/* What is read of a document, as the server would have written it. */
static inline int read_json(const json_t *reply, size_t prompt_count, uint64_t max_tokens,
                            const struct llama_scorer *scorer, struct generation *ret, struct fail *fail)
{
    AUTO_FREE char *text = json_dumps(reply, JSON_ENCODE_ANY);
    struct json_doc tree;
    assert_non_null(text);
    assert_int_equal(json_doc_parse(slice_from_str(text), &tree, fail), 0);
    int error = llama_reply_read(&tree, prompt_count, max_tokens, scorer, ret, fail);
    json_doc_finish(&tree);
    return error;
}

static inline int find_json(const json_t *reply, uint32_t id, struct llama_score *ret)
{
    AUTO_FREE char *text = json_dumps(reply, JSON_ENCODE_ANY);
    struct json_doc tree;
    assert_int_equal(json_doc_parse(slice_from_str(text), &tree, NULL), 0);
    int error = llama_reply_find(&tree, id, ret);
    json_doc_finish(&tree);
    return error;
}

/* Positions that were asked for, and what is answered. */
struct asked {
    size_t at[64], count; /* at: the first 64 */
};

static const struct llama_score lead = {-2.5f, {0xf0, 0x9f}, 2}, middle = {-1.5f, {0x98}, 1}, end = {-0.5f, {0}, 0},
                                plain = {-0.5f, {'x'}, 1};

static inline int answer_emoji(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret,
                               struct fail *fail)
{
    (void)fail;
    struct asked *asked = arg;
    if (asked->count < 64)
        asked->at[asked->count] = at;
    asked->count++;
    *ret = ids->ids[at] == 10813 ? lead : ids->ids[at] == 242 ? middle : ids->ids[at] == 2 ? end : plain;
    return 0;
}

static inline int fail_to_answer(void *arg, const struct tokens *ids, size_t at, struct llama_score *ret,
                                 struct fail *fail)
{
    (void)arg, (void)ids, (void)at, (void)ret;
    return fail_set(fail, -EIO, "no answer");
}

static inline int read_reply(const json_t *line, const json_t *answer, struct asked *asked, struct generation *ret,
                             struct fail *fail)
{
    const json_t *request = json_object_get(line, "request");
    struct llama_scorer scorer = {asked, answer_emoji};
    return read_json(answer, json_array_size(json_object_get(request, "prompt")),
                     (uint64_t)json_integer_value(json_object_get(request, "n_predict")), &scorer, ret, fail);
}

static inline int read_fixture(const char *name, struct asked *asked, struct generation *ret, struct fail *fail)
{
    AUTO_JSON json_t *line = fixture(name);
    return read_reply(line, json_object_get(line, "answer"), asked, ret, fail);
}

#endif
