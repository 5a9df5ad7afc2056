#include "workers/engines/dialects/special_token_escape.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "schemas/tokenizer_sample.h"
#include "workers/engines/dialects/reply_check.h"
#include "workers/engines/dialects/http_api.h"
#include "workers/engines/template/bridge.h"

enum {
    NAME_MAX_BYTES = 63, /* of a special token's */
    PROBE_IDS_MAX = 64
};

/* ---- the routes -------------------------------------------------------------------------- */

static json_t *body_for(const struct engine_info *info)
{
    return info->model[0] ? json_pack("{s:s}", "model", info->model) : json_object();
}

/* Special tokens' names are read as such. */
static int encode(struct engine *engine, const struct engine_info *info, struct slice text, struct tokens *ret,
                  struct fail *fail)
{
    AUTO_JSON json_t *body = body_for(info), *answer = NULL;
    json_object_set_new(body, "prompt", json_stringn(text.len ? (const char *)text.data : "", text.len));
    json_object_set_new(body, "add_special_tokens", json_false());
    if (json_object_size(body) != (info->model[0] ? 3 : 2))
        return fail_set(fail, -EINVAL, "the text is not UTF-8");
    int error = http_api_post(engine, "/tokenize", body, &answer, fail);
    return error < 0 ? error : http_api_ids(answer, ret, fail);
}

static int render(struct engine *engine, const struct engine_info *info, const struct task_message *messages,
                  size_t count, struct tokens *ret, struct fail *fail)
{
    AUTO_JSON json_t *body = body_for(info), *list = NULL, *answer = NULL;
    int error = http_api_messages(messages, count, &list, fail);
    if (error < 0)
        return error;
    if (json_object_set(body, "messages", list) < 0)
        return fail_memory(fail);
    error = http_api_post(engine, "/tokenize", body, &answer, fail);
    return error < 0 ? error : http_api_ids(answer, ret, fail);
}

static int say(struct engine *engine, const struct engine_info *info, const struct tokens *ids, size_t count,
               struct buffer *ret, struct fail *fail)
{
    static const char *const names[] = {"prompt" /* vLLM's word for it */, "text" /* SGLang's */, NULL};
    AUTO_BUFFER members = {0};
    http_api_write_text("model", info->model, &members);
    buffer_append_str(&members, "\"skip_special_tokens\":false,");
    AUTO_FREE char *begun = buffer_take_str(&members);
    return begun ? http_api_say(engine, ids, count, begun, names, ret, fail) : fail_memory(fail);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_letter(uint8_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

static bool is_inside(uint8_t c, uint8_t close)
{
    return close == ']' ? is_letter(c) || c == '_' || c == '/' || (c >= '0' && c <= '9')
                        : c > ' ' && !strchr("<>[]", c); /* so that no name hides another */
}

/* The length of the name that begins here, or 0. */
static size_t name_length(struct slice text)
{
    const uint8_t close = text.data[0] == '<' ? '>' : ']';
    size_t len = 1;
    while (len < text.len && len < NAME_MAX_BYTES && is_inside(text.data[len], close))
        len++;
    return len > 1 && len < text.len && text.data[len] == close ? len + 1 : 0;
}

bool special_escape_find_name(struct slice text, size_t *from, struct slice *ret)
{
    for (; *from < text.len; ++*from) {
        const uint8_t *at = text.data + *from;
        size_t len = *at == '<' || *at == '[' ? name_length(slice_of(at, text.len - *from)) : 0;
        if (len == 0)
            continue;
        *ret = slice_of(at, len);
        *from += len;
        return true;
    }
    return false;
}

size_t special_escape_cut(struct slice name)
{
    size_t at = 0;
    while (at < name.len && !is_letter(name.data[at]))
        at++;
    while (at < name.len && is_letter(name.data[at]))
        at++;
    return at < name.len ? at : 1;
}

/* ---- plain text -------------------------------------------------------------------------- */

enum { NAMES_MAX = 512 }; /* different ones in one text */

struct names {
    struct slice list[NAMES_MAX];
    bool is_token[NAMES_MAX];
    size_t count;
};

static bool names_have(const struct names *names, struct slice name)
{
    for (size_t i = 0; names && i < names->count; i++)
        if (slice_equal(names->list[i], name))
            return names->is_token[i];
    return true; /* too many to know: cutting is never wrong */
}

static void names_collect(struct names *names, struct slice text, struct slice separator)
{
    struct slice name;
    for (size_t at = 0; names->count < NAMES_MAX && special_escape_find_name(text, &at, &name);) {
        size_t i = 0;
        while (i < names->count && !slice_equal(names->list[i], name))
            i++;
        if (i < names->count || slice_equal(name, separator))
            continue;
        names->list[names->count] = name;
        names->is_token[names->count++] = true;
    }
}

/* Which of the names are one token: all in one request, the separator between them. */
static int names_ask(struct engine *engine, const struct engine_info *info, struct names *names, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    for (size_t i = 0; i < names->count; i++) {
        buffer_append(&text, names->list[i].data, names->list[i].len);
        buffer_append_str(&text, info->separator);
    }
    int error = text.failed ? fail_memory(fail) : encode(engine, info, buffer_peek(&text), &ids, fail);
    size_t at = 0, from = 0;
    for (size_t i = 0; error == 0 && i < ids.count && at < names->count; i++)
        if (ids.ids[i] == info->separator_id) {
            names->is_token[at++] = i - from <= 1;
            from = i + 1;
        }
    if (error == 0 && (at != names->count || from != ids.count))
        error = fail_set(fail, -EPROTO, "the engine's tokenizer loses a special token");
    tokens_finish(&ids);
    return error;
}

/* The text with the separator set into every name that is a token (NULL: into all); how often. */
static size_t join(const struct engine_info *info, const struct names *names, struct slice text, struct buffer *ret)
{
    struct slice name;
    size_t done = 0, separator = 0;
    for (size_t at = 0; special_escape_find_name(text, &at, &name);) {
        if (!slice_is(name, info->separator) && !names_have(names, name))
            continue;
        size_t cut = (size_t)(name.data - text.data) + special_escape_cut(name);
        buffer_append(ret, text.data + done, cut - done);
        buffer_append_str(ret, info->separator);
        done = cut;
        separator++;
    }
    buffer_append(ret, text.data + done, text.len - done);
    return separator;
}

static int take_out(const struct engine_info *info, const struct tokens *ids, size_t separator, struct tokens *ret,
                    struct fail *fail)
{
    size_t found = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == info->separator_id)
            found++;
        else if (!tokens_append(ret, &ids->ids[i], 1))
            return fail_memory(fail);
    return found == separator
               ? 0
               : fail_set(fail, -EPROTO, "the engine's tokenizer made %zu special tokens of %zu", found, separator);
}

static int encode_named(struct engine *engine, const struct engine_info *info, struct slice text, struct tokens *ret,
                        struct fail *fail)
{
    AUTO_FREE struct names *names = calloc(1, sizeof(*names));
    AUTO_BUFFER joined = {0};
    struct tokens ids = {0};
    if (!names)
        return fail_memory(fail);
    names_collect(names, text, slice_from_str(info->separator));
    int error = names->count ? names_ask(engine, info, names, fail) : 0;
    if (error < 0)
        return error;
    size_t separator = join(info, names, text, &joined);
    error = joined.failed ? fail_memory(fail) : encode(engine, info, buffer_peek(&joined), &ids, fail);
    if (error == 0)
        error = take_out(info, &ids, separator, ret, fail);
    tokens_finish(&ids);
    return error;
}

static int encode_plain(struct engine *engine, const struct engine_info *info, struct slice text, struct tokens *ret,
                        struct fail *fail)
{
    struct slice name;
    size_t at = 0;
    if (!special_escape_find_name(text, &at, &name))
        return encode(engine, info, text, ret, fail);
    if (!info->separator[0])
        return fail_set(fail, -ENOTSUP,
                        "the engine's tokenizer cannot be kept from reading \"%.*s\" as a special "
                        "token",
                        SLICE_ARG(name));
    return encode_named(engine, info, text, ret, fail);
}

/* ---- the sketch -------------------------------------------------------------------------- */

/*
 * Conversations in which templates and tokenizers differ: all roles, a thought, and the text that tokenizers are known
 * by. Some templates refuse the first one.
 */
static const struct sketch {
    struct task_message messages[5];
    size_t count;
} sketches[] = {
    {{{(char *)"system", (char *)"Be brief."},
      {(char *)"user", (char *)tokenizer_sample},
      {(char *)"assistant", (char *)"<think>\n" TURN_TEMPLATE_REPLY "\n</think>\n\n" TURN_TEMPLATE_REPLY},
      {(char *)"tool", (char *)TURN_TEMPLATE_USER},
      {(char *)"user", (char *)"  \n" TURN_TEMPLATE_USER "\n  "}},
     5},
    {{{(char *)"user", (char *)tokenizer_sample},
      {(char *)"assistant", (char *)"<think>\n" TURN_TEMPLATE_REPLY "\n</think>\n\n" TURN_TEMPLATE_REPLY},
      {(char *)"user", (char *)"  \n" TURN_TEMPLATE_USER "\n  "}},
     3},
};

/* The ids of the first one that the template takes; none, where it refuses all. */
static int draw_sketch(struct engine *engine, const struct engine_info *info, struct tokens *ret, struct fail *fail)
{
    int error = -EINVAL;
    while (error == -EINVAL && engine->sketch < sizeof(sketches) / sizeof(*sketches)) {
        const struct sketch *sketch = &sketches[engine->sketch];
        ret->count = 0;
        error = render(engine, info, sketch->messages, sketch->count, ret, fail);
        engine->sketch += error == -EINVAL;
    }
    return error == -EINVAL ? 0 : error;
}

int special_escape_mark(struct engine *engine, const char *model, struct buffer *ret, struct fail *fail)
{
    struct engine_info info = {0};
    struct tokens ids = {0};
    snprintf(info.model, sizeof(info.model), "%s", model);
    int error = draw_sketch(engine, &info, &ids, fail);
    if (error == -EPROTO || error == -ENOTSUP) /* describe says what it lacks */
        error = 0;
    buffer_printf(ret, "%u:", engine->sketch);
    tokens_write(&ids, ret);
    tokens_finish(&ids);
    return error == 0 && ret->failed ? fail_memory(fail) : error;
}

/* ---- learning ---------------------------------------------------------------------------- */

/* Whether names with the separator in them come out as they do without: on names that are none. */
static int prove_separator(struct engine *engine, const struct engine_info *info, bool *ret, struct fail *fail)
{
    static const char plain[] = "a <|sluice_end|>\n<sluice_call>x[SLUICE]y </sluice> <"
                                "\xef\xbd\x9csluice\xe2\x96\x81it\xef\xbd\x9c>.";
    AUTO_BUFFER joined = {0};
    struct tokens whole = {0}, cut = {0}, rest = {0};
    size_t separator = join(info, NULL, slice_from_str(plain), &joined);
    int error = joined.failed ? fail_memory(fail) : encode(engine, info, slice_from_str(plain), &whole, fail);
    if (error == 0)
        error = encode(engine, info, buffer_peek(&joined), &cut, fail);
    *ret = error == 0 && take_out(info, &cut, separator, &rest, NULL) == 0 && tokens_equal(&rest, &whole);
    tokens_finish(&whole);
    tokens_finish(&cut);
    tokens_finish(&rest);
    return error;
}

/* Whether `id` has a name that is read as it alone, and the name. */
static int read_name(struct engine *engine, const struct engine_info *info, uint32_t id, struct buffer *name, bool *ret,
                     struct fail *fail)
{
    struct tokens one = {.ids = &id, .count = 1}, ids = {0};
    struct slice found;
    size_t at = 0;
    *ret = false;
    int error = say(engine, info, &one, 1, name, fail);
    if (error < 0 || !special_escape_find_name(buffer_peek(name), &at, &found) || found.len != name->len ||
        name->len >= sizeof(info->separator))
        return error;
    error = encode(engine, info, found, &ids, fail);
    *ret = error == 0 && ids.count == 1 && ids.ids[0] == id;
    tokens_finish(&ids);
    return error;
}

/* The first token of a rendered prompt that can be a separator. None: info->separator stays "". */
static int learn_separator(struct engine *engine, struct engine_info *info, const struct tokens *prompt,
                           struct fail *fail)
{
    for (size_t i = 0; i < prompt->count && i < PROBE_IDS_MAX; i++) {
        AUTO_BUFFER name = {0};
        bool is_good = false;
        int error = read_name(engine, info, prompt->ids[i], &name, &is_good, fail);
        if (error == 0 && is_good) {
            snprintf(info->separator, sizeof(info->separator), "%.*s", (int)name.len, (char *)name.data);
            info->separator_id = prompt->ids[i];
            error = prove_separator(engine, info, &is_good, fail);
            if (!is_good)
                info->separator[0] = '\0';
        }
        if (error < 0 || is_good)
            return error;
    }
    return 0;
}

/* What the template does, in ids, and, where the server does not show it, in text. */
static int learn_template(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    int error = draw_sketch(engine, info, &ids, fail);
    if (error == 0 && ids.count > 0 && !info->template_digest[0])
        error = say(engine, info, &ids, ids.count, &text, fail);
    if (error == 0 && (!digest_of(slice_of(ids.ids, ids.count * sizeof(*ids.ids)), info->sketch_digest) ||
                       (!info->template_digest[0] && !digest_of(buffer_peek(&text), info->template_digest))))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

/* The special token that the template writes behind a reply ends a turn. */
static int learn_end(struct engine *engine, struct engine_info *info, const struct tokens *turns, struct fail *fail)
{
    static const char reply[] = TURN_TEMPLATE_REPLY;
    AUTO_BUFFER text = {0};
    struct tokens ids = {0};
    int error = say(engine, info, turns, turns->count, &text, fail);
    const uint8_t *at = error == 0 ? memmem(text.data, text.len, reply, sizeof(reply) - 1) : NULL;
    size_t from = at ? (size_t)(at - text.data) + sizeof(reply) - 1 : 0, begin = from;
    struct slice name;
    if (at && special_escape_find_name(buffer_peek(&text), &from, &name) && name.data == text.data + begin) {
        error = encode(engine, info, name, &ids, fail);
        if (error == 0 && ids.count == 1 && !tokens_append(&info->ends, ids.ids, 1))
            error = fail_memory(fail);
    }
    tokens_finish(&ids);
    return error;
}

static int learn_digest(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    struct tokens ids = {0};
    int error = encode_plain(engine, info, slice_from_str(tokenizer_sample), &ids, fail);
    error = tokenizer_digest_take(error, &ids, info->tokenizer_digest, fail);
    tokens_finish(&ids);
    return error;
}

/* Whether text comes back from its ids with its blanks, also where clean_up_tokenization_spaces drops some. */
static int learn_blanks(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    static const char text[] = "x . x ? x ! x , x ' x n't x 'm x 's x 've x 're x  x";
    AUTO_BUFFER said = {0};
    struct tokens ids = {0};
    int error = encode(engine, info, slice_from_str(text), &ids, fail);
    if (error == 0)
        error = say(engine, info, &ids, ids.count, &said, fail);
    info->drops_blanks = !slice_is(buffer_peek(&said), text);
    if (error == 0 && info->drops_blanks && !reply_says(buffer_peek(&said), slice_from_str(text), BLANKS_IGNORED))
        error = fail_set(fail, -EPROTO, "what the engine says of ids is not their text: \"%.*s\"",
                         SLICE_ARG(buffer_peek(&said)));
    tokens_finish(&ids);
    return error;
}

int special_escape_learn(struct engine *engine, struct engine_info *info, struct fail *fail)
{
    const struct task_message messages[] = {{(char *)"user", (char *)TURN_TEMPLATE_USER},
                                            {(char *)"assistant", (char *)TURN_TEMPLATE_REPLY},
                                            {(char *)"user", (char *)TURN_TEMPLATE_USER}};
    struct tokens plain = {0}, turns = {0};
    int error = encode(engine, info, slice_from_str("x"), &plain, fail);
    if (error == 0 && plain.count == 0)
        error = fail_set(fail, -EPROTO, "the engine has no token for \"x\"");
    if (error == 0) {
        info->plain_id = plain.ids[plain.count - 1];
        error = render(engine, info, messages, 3, &turns, fail);
    }
    if (error == 0)
        error = learn_end(engine, info, &turns, fail);
    if (error == 0)
        error = learn_separator(engine, info, &turns, fail);
    if (error == 0)
        error = learn_template(engine, info, fail);
    if (error == 0)
        error = learn_digest(engine, info, fail);
    if (error == 0)
        error = learn_blanks(engine, info, fail);
    tokens_finish(&plain);
    tokens_finish(&turns);
    return error;
}

/* ---- the slots --------------------------------------------------------------------------- */

int special_escape_render(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                          struct fail *fail)
{
    return render(engine, &engine->info, messages, count, ret, fail);
}

int special_escape_apply_template(struct engine *engine, const struct task_message *messages, size_t count,
                                  struct buffer *ret, struct fail *fail)
{
    struct tokens ids = {0};
    int error = special_escape_render(engine, messages, count, &ids, fail);
    if (error == 0)
        error = say(engine, &engine->info, &ids, ids.count, ret, fail);
    tokens_finish(&ids);
    return error;
}

int special_escape_tokenize(struct engine *engine, struct slice text, enum tokenize_mode mode, struct tokens *ret,
                            struct fail *fail)
{
    return (mode == TOKENIZE_PLAIN ? encode_plain : encode)(engine, &engine->info, text, ret, fail);
}

int special_escape_detokenize(struct engine *engine, uint32_t id, struct buffer *ret, struct fail *fail)
{
    struct tokens one = {.ids = &id, .count = 1};
    return say(engine, &engine->info, &one, 1, ret, fail);
}

int special_escape_say(struct engine *engine, const struct tokens *ids, size_t count, struct buffer *ret,
                       struct fail *fail)
{
    return say(engine, &engine->info, ids, count, ret, fail);
}
