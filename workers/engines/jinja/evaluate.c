#include "workers/engines/jinja/evaluate.h"

#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"
#include "workers/engines/jinja/calls/filters.h"
#include "workers/engines/jinja/calls/functions.h"
#include "workers/engines/jinja/calls/methods.h"
#include "workers/engines/jinja/calls/operators.h"
#include "workers/engines/jinja/calls/tests.h"

/* ---- names and parts --------------------------------------------------------------------------------- */

static struct jinja_value evaluate_name(struct jinja_run *run, const struct jinja_node *node)
{
    for (const struct jinja_frame *frame = run->frame; frame; frame = frame->outer) {
        const struct jinja_value *found = jinja_dict_named(run, frame->names, node->text);
        if (found)
            return *found;
    }
    return (struct jinja_value){.kind = jinja_has_function(node->text) ? JINJA_CALLABLE : JINJA_UNDEFINED,
                                .text = node->text};
}

static struct jinja_value evaluate_items(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_list *list = jinja_list_new(run);
    for (const struct jinja_node *item = node->body; item && run->code == 0; item = item->next)
        jinja_list_add(run, list, jinja_evaluate(run, item));
    if (run->code == 0)
        list->is_tuple = node->kind == NODE_TUPLE;
    return jinja_list_value(list);
}

static struct jinja_value evaluate_dict(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_dict *dict = jinja_dict_new(run);
    for (const struct jinja_node *item = node->body; item && item->next && run->code == 0; item = item->next->next) {
        const struct jinja_value key = jinja_evaluate(run, item);
        jinja_dict_set(run, dict, key, jinja_evaluate(run, item->next));
    }
    return jinja_dict_value(dict);
}

static struct jinja_value evaluate_attribute(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    if (of.kind == JINJA_UNDEFINED)
        jinja_fail(run, "%.*s is undefined, and so has no %.*s", SLICE_ARG(of.text), SLICE_ARG(node->text));
    if (jinja_has_method(&of, node->text))
        return (struct jinja_value){.kind = JINJA_CALLABLE, .text = node->text};
    return jinja_attribute(run, &of, node->text);
}

static struct jinja_value evaluate_item(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a), key = jinja_evaluate(run, node->b);
    return run->code == 0 ? jinja_item(run, &of, &key) : of;
}

/* ---- slices -------------------------------------------------------------------------------------------- */

static int64_t bound(struct jinja_run *run, const struct jinja_node *node, int64_t standard, int64_t least,
                     int64_t count)
{
    const struct jinja_value value = node ? jinja_evaluate(run, node) : jinja_none();
    if (value.kind == JINJA_NONE)
        return standard;
    if (!jinja_is_whole(&value)) {
        jinja_fail(run, "a slice wants whole numbers, not %s", jinja_kind_word(&value));
        return standard;
    }
    const int64_t at = jinja_whole(&value) < 0 ? jinja_whole(&value) + count : jinja_whole(&value);
    const int64_t most = least < 0 ? count - 1 : count;
    return at < least ? least : at > most ? most : at;
}

static struct jinja_value evaluate_slice(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    const struct jinja_value by = node->other ? jinja_evaluate(run, node->other) : jinja_integer(1);
    const int64_t step = jinja_is_whole(&by) ? jinja_whole(&by) : 0;
    struct jinja_list *list = jinja_list_new(run);
    struct buffer text = {0};
    if (step == 0 || step > INT32_MAX || step < INT32_MIN || (of.kind != JINJA_STRING && of.kind != JINJA_LIST))
        jinja_fail(run, "there is no such slice of %s", jinja_kind_word(&of));
    if (run->code < 0)
        return of;
    const struct jinja_list *items = jinja_items(run, &of);
    const int64_t count = (int64_t)items->count, least = step < 0 ? -1 : 0;
    const int64_t from = bound(run, node->b, step < 0 ? count - 1 : 0, least, count);
    const int64_t to = bound(run, node->c, step < 0 ? -1 : count, least, count);
    for (int64_t i = from; run->code == 0 && (step > 0 ? i < to : i > to); i += step)
        if (of.kind == JINJA_STRING)
            jinja_append(run, &text, items->items[i].text.data, items->items[i].text.len);
        else
            jinja_list_add(run, list, items->items[i]);
    if (of.kind == JINJA_STRING)
        return jinja_string_of(run, &text);
    if (run->code == 0)
        list->is_tuple = of.list->is_tuple;
    return jinja_view_value(list, of.list->view);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static struct jinja_arguments *evaluate_arguments(struct jinja_run *run, const struct jinja_node *node)
{
    static struct jinja_arguments none;
    struct jinja_arguments *given = node ? jinja_alloc(run, sizeof(*given)) : NULL;
    for (; node && given && run->code == 0; node = node->next) {
        const struct jinja_value value = jinja_evaluate(run, node->a);
        if (given->count + given->named_count == JINJA_ARGUMENTS_MAX) {
            jinja_fail(run, "more than %d arguments", JINJA_ARGUMENTS_MAX);
        } else if (node->text.len) {
            given->names[given->named_count] = node->text;
            given->named[given->named_count++] = value;
        } else {
            given->list[given->count++] = value;
        }
    }
    return given ? given : &none;
}

static struct jinja_value call_value(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    const struct jinja_arguments *given = evaluate_arguments(run, node->body);
    if (run->code < 0)
        return of;
    if (of.kind == JINJA_CALLABLE && of.macro)
        return run->call_macro(run, &of, given);
    if (of.kind == JINJA_CALLABLE && jinja_has_function(of.text))
        return jinja_function(run, of.text, given);
    jinja_fail(run, "%.*s is not called: it is %s",
               SLICE_ARG(of.kind == JINJA_UNDEFINED || of.kind == JINJA_CALLABLE ? of.text : slice_from_str("this")),
               jinja_kind_word(&of));
    return of;
}

/* A method is called of what it is of. */
static struct jinja_value evaluate_call(struct jinja_run *run, const struct jinja_node *node)
{
    if (node->a->kind != NODE_ATTRIBUTE)
        return call_value(run, node);
    const struct jinja_value of = jinja_evaluate(run, node->a->a);
    if (run->code < 0 || !jinja_has_method(&of, node->a->text)) {
        const bool is_member = of.kind == JINJA_DICT && jinja_dict_named(run, of.dict, node->a->text);
        if (!is_member)
            jinja_fail(run, "%s has no method \"%.*s\" that is known here", jinja_kind_word(&of),
                       SLICE_ARG(node->a->text));
        return is_member ? call_value(run, node) : of;
    }
    return jinja_method(run, node->a->text, &of, evaluate_arguments(run, node->body));
}

static struct jinja_value evaluate_filter(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    const struct jinja_arguments *given = evaluate_arguments(run, node->body);
    return run->code == 0 ? jinja_filter(run, node->text, &of, given) : of;
}

static struct jinja_value evaluate_test(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    const struct jinja_arguments *given = evaluate_arguments(run, node->body);
    return run->code == 0 ? jinja_bool(jinja_test(run, node->text, &of, given)) : of;
}

/* ---- operators ------------------------------------------------------------------------------------------ */

static struct jinja_value evaluate_operation(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value a = jinja_evaluate(run, node->a), b = jinja_evaluate(run, node->b);
    return run->code == 0 ? jinja_operate(run, &a, node->text, &b) : a;
}

static struct jinja_value evaluate_negative(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    if (of.kind == JINJA_REAL)
        return jinja_real(-of.real);
    if (!jinja_is_whole(&of) || jinja_whole(&of) == INT64_MIN)
        jinja_fail(run, "minus %s", jinja_kind_word(&of));
    return run->code == 0 ? jinja_integer(-jinja_whole(&of)) : of;
}

static struct jinja_value evaluate_choice(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value condition = jinja_evaluate(run, node->b);
    if (jinja_is_true(&condition))
        return jinja_evaluate(run, node->a);
    return node->c ? jinja_evaluate(run, node->c) : jinja_undefined("what is chosen otherwise");
}

/* "and" and "or" give one of the two. */
static struct jinja_value evaluate_logic(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value a = jinja_evaluate(run, node->a);
    return jinja_is_true(&a) == (node->kind == NODE_AND) && run->code == 0 ? jinja_evaluate(run, node->b) : a;
}

static struct jinja_value evaluate_not(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value of = jinja_evaluate(run, node->a);
    return jinja_bool(!jinja_is_true(&of));
}

static struct jinja_value evaluate_constant(struct jinja_run *run, const struct jinja_node *node)
{
    return (void)run, node->constant;
}

/* ---- all of them ------------------------------------------------------------------------------------------ */

static struct jinja_value (*const evaluators[])(struct jinja_run *run, const struct jinja_node *node) = {
    [NODE_CONSTANT] = evaluate_constant, [NODE_NAME] = evaluate_name,          [NODE_LIST] = evaluate_items,
    [NODE_TUPLE] = evaluate_items,       [NODE_DICT] = evaluate_dict,          [NODE_ATTRIBUTE] = evaluate_attribute,
    [NODE_ITEM] = evaluate_item,         [NODE_SLICE] = evaluate_slice,        [NODE_CALL] = evaluate_call,
    [NODE_FILTER] = evaluate_filter,     [NODE_TEST] = evaluate_test,          [NODE_NOT] = evaluate_not,
    [NODE_NEGATIVE] = evaluate_negative, [NODE_AND] = evaluate_logic,          [NODE_OR] = evaluate_logic,
    [NODE_CHOICE] = evaluate_choice,     [NODE_OPERATION] = evaluate_operation};

struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_value value = jinja_undefined("");
    if (jinja_enter(run, node->line))
        value = evaluators[node->kind](run, node);
    jinja_leave(run);
    return value;
}
