#include "workers/evaluators/verifier/ctrf.h"

#include <errno.h>
#include <math.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"

static enum test_status status_of(const struct json_doc *doc, const struct json_doc_node *word)
{
    static const struct {
        const char *word;
        enum test_status status;
    } words[] = {
        {"passed", TEST_PASSED}, {"failed", TEST_FAILED}, {"skipped", TEST_SKIPPED}, {"pending", TEST_SKIPPED}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (json_doc_is(doc, word, words[i].word))
            return words[i].status;
    return TEST_ERROR;
}

/* As a C string, up to its first NUL; NULL: no string. */
static const char *text_of(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *room)
{
    if (!node || node->kind != JSON_DOC_STRING || !json_doc_string(doc, node, room) || !buffer_append(room, "", 1))
        return NULL;
    return (const char *)room->data;
}

static bool add_test(const struct json_doc *doc, const struct json_doc_node *test, struct verdict *verdict,
                     struct fail *fail)
{
    AUTO_BUFFER name_room = {0}, message_room = {0};
    struct refusal no = {0};
    double ms = 0;
    const char *name = text_of(doc, json_doc_get(doc, test, "name"), &name_room);
    const char *message = text_of(doc, json_doc_get(doc, test, "message"), &message_room);
    const bool is_timed = json_doc_number(json_doc_get(doc, test, "duration"), &ms) && isfinite(ms) && ms >= 0;
    if (!name || !*name) {
        fail_set(fail, -EPROTO, "one of its tests has no name");
        return false;
    }
    ms /= 1000;
    if (verdict_add_test(verdict, name, status_of(doc, json_doc_get(doc, test, "status")),
                         message && *message ? message : NULL, is_timed ? &ms : NULL, &no))
        return true;
    fail_set(fail, -EPROTO, "%s", no.text);
    return false;
}

static bool add_tests(const struct json_doc *doc, struct verdict *verdict, struct fail *fail)
{
    const struct json_doc_node *results = json_doc_get(doc, json_doc_root(doc), "results");
    const struct json_doc_node *tests = json_doc_get(doc, results, "tests");
    if (!tests || tests->kind != JSON_DOC_ARRAY) {
        fail_set(fail, -EPROTO, "it has no results.tests");
        return false;
    }
    const struct json_doc_node *test = json_doc_first(tests);
    for (uint32_t left = json_doc_count(tests); left > 0; left--, test = json_doc_behind(doc, test))
        if (!add_test(doc, test, verdict, fail))
            return false;
    return true;
}

bool ctrf_read(struct slice text, struct verdict *verdict, struct fail *fail)
{
    struct json_doc doc;
    if (text.len > CTRF_BYTES_MAX) {
        fail_set(fail, -EFBIG, "it is longer than %d bytes", CTRF_BYTES_MAX);
        return false;
    }
    const bool good = json_doc_parse_up_to(text, CTRF_NODES_MAX, &doc, fail) == 0 && add_tests(&doc, verdict, fail);
    json_doc_finish(&doc);
    return good;
}
