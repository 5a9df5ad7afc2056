#include "workers/engines/jinja/jinja.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/jinja/render.h"
#include "workers/engines/jinja/reading/parse.h"

struct jinja {
    struct arena arena; /* of all that follows */
    const struct jinja_node *statements;
};

/* Its lines end with "\n" alone, and its last one does not end. */
static bool take_source(struct slice source, struct buffer *ret)
{
    for (size_t i = 0; i < source.len; i++) {
        const bool is_return = source.data[i] == '\r';
        if (is_return && i + 1 < source.len && source.data[i + 1] == '\n')
            continue;
        buffer_append(ret, is_return ? (const uint8_t *)"\n" : &source.data[i], 1);
    }
    if (ret->len && ret->data[ret->len - 1] == '\n')
        ret->len--;
    return !ret->failed;
}

static int parse(struct jinja *jinja, struct slice source, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct jinja_run run = {.arena = &jinja->arena, .fail = fail};
    struct jinja_parser parser = {.run = &run};
    if (source.len > JINJA_SOURCE_MAX)
        return fail_set(fail, -EINVAL, "a chat template of more than %d KiB", JINJA_SOURCE_MAX >> 10);
    const char *own = take_source(source, &text) ? arena_text(&jinja->arena, buffer_peek(&text)) : NULL;
    if (!own)
        return fail_memory(fail);
    jinja_lex(&run, slice_of(own, text.len), &parser.tokens);
    jinja->statements = jinja_parse_all(&parser);
    if (run.code == 0 && !jinja_peeks(&parser, TOKEN_END, NULL))
        jinja_fail(&run, "something is left");
    return run.code;
}

int jinja_parse(struct slice source, struct jinja **ret, struct fail *fail)
{
    struct jinja *jinja = calloc(1, sizeof(*jinja));
    int error = jinja ? parse(jinja, source, fail) : fail_memory(fail);
    if (error < 0)
        jinja_destroy(&jinja);
    else
        *ret = jinja;
    return error;
}

void jinja_destroy(struct jinja **jinja)
{
    struct jinja *old = take_ptr(jinja);
    if (!old)
        return;
    arena_finish(&old->arena);
    free(old);
}

int jinja_render(const struct jinja *jinja, const json_t *globals, struct buffer *ret, struct fail *fail)
{
    struct arena arena = {0};
    AUTO_BUFFER out = {0};
    struct jinja_run run = {.arena = &arena, .fail = fail, .out = &out, .call_macro = jinja_call_macro, .line = 1};
    const struct jinja_value names = jinja_of_json(&run, globals);
    struct jinja_frame frame = {.names = names.dict};
    run.globals = run.frame = &frame;
    if (run.code == 0)
        jinja_write_all(&run, jinja->statements);
    if (run.code == 0 && !buffer_append(ret, out.data, out.len) && out.len)
        run.code = fail_memory(fail);
    arena_finish(&arena);
    return run.code;
}
