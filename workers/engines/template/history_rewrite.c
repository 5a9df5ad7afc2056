#include "workers/engines/template/history_rewrite.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "workers/engines/template/turn_rendering.h"
#include "common/base/text.h"

/* How models mark what they think. Bit i of turn template->rewrites is for the i-th. */
static const struct {
    const char *open, *close;
} thinking[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"[THINK]", "[/THINK]"},
    {"<reasoning>", "</reasoning>"},
    {"\u25c1think\u25b7", "\u25c1/think\u25b7"},
};
enum { THINKING = sizeof(thinking) / sizeof(*thinking) };

static const uint32_t REWRITES_ANY = UINT32_C(1) << 31; /* replies without thinking, too */

/* ---- whether one is kept ----------------------------------------------------------------- */

static bool cut_end(struct slice *text, struct slice end)
{
    if (end.len > text->len || (end.len > 0 && memcmp(text->data + text->len - end.len, end.data, end.len) != 0))
        return false;
    text->len -= end.len;
    return true;
}

/* Whether the text is the turn template's lead, the reply and the turn template's tail. */
static bool is_kept(struct slice rendered, const struct turn_template *turn_template, const char *reply)
{
    if (!cut_end(&rendered, slice_from_str(turn_template->tail)))
        return false;
    rendered = text_trim_right(rendered);
    if (!cut_end(&rendered, text_trim(slice_from_str(reply))))
        return false;
    return slice_equal(text_trim_right(rendered), text_trim_right(slice_from_str(turn_template->lead)));
}

static int ask_kept(struct engine *engine, enum tell_role role, const struct turn_template *turn_template,
                    const char *reply, bool *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int error = turn_template_render(engine, role, 1, reply, TURN_TEMPLATE_USER, &text, fail);
    if (error == -ENOTSUP) { /* the template refuses this reply */
        *ret = false;
        return 0;
    }
    *ret = error == 0 && is_kept(buffer_peek(&text), turn_template, reply);
    return error;
}

/* ---- learning ---------------------------------------------------------------------------- */

static const char *const plain[] = {
    "The answer\n\n  is 42.\n\n\nSee: {\"a\": [1, 2.50], \"b\": null}\n```bash\nls -l\n```",
    "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
    "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>",
};

static int learn_plain(struct engine *engine, enum tell_role role, struct turn_template *turn_template,
                       struct fail *fail)
{
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
        bool kept;
        int error = ask_kept(engine, role, turn_template, plain[i], &kept, fail);
        if (error < 0)
            return error;
        turn_template->rewrites |= kept ? 0 : REWRITES_ANY;
    }
    return 0;
}

static int learn_thinking(struct engine *engine, enum tell_role role, struct turn_template *turn_template, size_t i,
                          struct fail *fail)
{
    static const char *const forms[] = {"%s\nwhy\n%s\n\nanswer", "%swhy%sanswer"};
    for (size_t k = 0; k <= sizeof(forms) / sizeof(*forms); k++) {
        char reply[128];
        bool kept;
        if (k < sizeof(forms) / sizeof(*forms))
            snprintf(reply, sizeof(reply), forms[k], thinking[i].open, thinking[i].close);
        else /* its beginning is in the prompt */
            snprintf(reply, sizeof(reply), "why\n%s\n\nanswer", thinking[i].close);
        int error = ask_kept(engine, role, turn_template, reply, &kept, fail);
        if (error < 0)
            return error;
        turn_template->rewrites |= kept ? 0 : UINT32_C(1) << i;
    }
    return 0;
}

int history_rewrite_learn(struct engine *engine, enum tell_role role, struct turn_template *turn_template,
                          struct fail *fail)
{
    int error = learn_plain(engine, role, turn_template, fail);
    for (size_t i = 0; error == 0 && i < THINKING; i++)
        error = learn_thinking(engine, role, turn_template, i, fail);
    return error;
}

/* ---- a reply ----------------------------------------------------------------------------- */

static bool is_suspect(const struct turn_template *turn_template, const char *reply)
{
    if (turn_template->rewrites & REWRITES_ANY)
        return true;
    for (size_t i = 0; i < THINKING; i++)
        if ((turn_template->rewrites >> i & 1) && (strstr(reply, thinking[i].open) || strstr(reply, thinking[i].close)))
            return true;
    return false;
}

int history_rewrite_check(struct engine *engine, const struct turn_template *turn_template, const char *reply,
                          struct fail *fail)
{
    bool kept = true;
    int error = is_suspect(turn_template, reply)
                    ? ask_kept(engine, turn_template->role, turn_template, reply, &kept, fail)
                    : 0;
    if (error == 0 && !kept)
        error = fail_set(fail, -ENOTSUP, "rewrite: the template does not keep the reply before as it was sampled");
    return error;
}
