/*
 * With the 1st, 2nd, 3rd ... allocation failing: a body is refused for want of memory or read as ever, a buffer of what
 * is told has failed or is whole, and nothing leaks or breaks.
 */
#include "tests/workers/agents/proxy/dialect_replies.h"

/* ---- allocations that fail --------------------------------------------------------------------- */

static size_t left = SIZE_MAX; /* that do not */

static bool may_allocate(void)
{
    if (left == SIZE_MAX)
        return true;
    left -= left > 0;
    return left > 0;
}

void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_malloc(size_t size) { return may_allocate() ? __real_malloc(size) : NULL; }
void *__wrap_realloc(void *old, size_t size) { return may_allocate() ? __real_realloc(old, size) : NULL; }
char *__wrap_strdup(const char *text) { return may_allocate() ? __real_strdup(text) : NULL; }

/* ---- bodies ------------------------------------------------------------------------------------ */

/* How many allocations it took. */
static size_t read_with(const struct dialect *dialect, const json_t *body, size_t allocations, bool *ret_done)
{
    struct said_request request = {0};
    struct fail fail = {0};
    left = allocations;
    const int error = dialect->read(body, &request, &fail);
    const size_t used = allocations - left;
    left = SIZE_MAX;
    *ret_done = error != -ENOMEM;
    assert_true(error == 0 || error == -ENOMEM || (error == -EINVAL && allocations > 100000));
    said_request_finish(&request);
    return used;
}

static void bodies_are_read_or_there_is_no_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        AUTO_FREE char *table = read_requests(dialect_names[i]);
        const char *at = table;
        for (json_t *body; (body = next_body(&at)); json_decref(body)) {
            bool is_done;
            const size_t all = read_with(dialect_named(dialect_names[i]), body, 1000000, &is_done);
            assert_true(is_done);
            for (size_t allocations = 1; json_is_object(body) && allocations <= all; allocations++) {
                read_with(dialect_named(dialect_names[i]), body, allocations, &is_done);
                assert_false(is_done);
            }
        }
    }
}

/* ---- turns ------------------------------------------------------------------------------------- */

static bool tell_with(const struct dialect *dialect, const struct reply *reply, size_t allocations, struct buffer *out)
{
    struct reply_stream stream = {0};
    left = allocations;
    dialect->write(reply, out);
    dialect->stream_begin(&stream, reply, out);
    if (reply->thinking)
        dialect->stream_thinking(&stream, reply, slice_of(reply->thinking, 1), out);
    dialect->stream_text(&stream, reply, slice_of(reply->text, 2), out);
    dialect->stream_end(&stream, reply, true, out);
    dialect->write_error(REPLY_TOO_LONG, "words", out);
    dialect->stream_error(&stream, REPLY_TOO_LONG, "words", out);
    dialect->write_count(1, out);
    dialect_write_models("M", 1, 1, out);
    left = SIZE_MAX;
    return !out->failed;
}

static void turns_are_told_or_there_is_no_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        AUTO_BUFFER whole = {0};
        struct told told;
        told_init(&turns[0], &told);
        assert_true(tell_with(dialect_named(dialect_names[i]), &told.reply, 1000000, &whole));
        size_t allocations = 1;
        for (bool is_told = false; !is_told; allocations++) {
            AUTO_BUFFER out = {0};
            is_told = tell_with(dialect_named(dialect_names[i]), &told.reply, allocations, &out);
            assert_true(!is_told || slice_equal(buffer_peek(&out), buffer_peek(&whole)));
        }
        assert_true(allocations > 100);
        told_finish(&told);
    }
}

int main(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_read_or_there_is_no_memory),
        cmocka_unit_test(turns_are_told_or_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
