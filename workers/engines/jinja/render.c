#include "workers/engines/jinja/render.h"

#include "workers/engines/jinja/values/text.h"
#include "workers/engines/jinja/values/value_look.h"

/* What comes after a statement: the next one, or the end of a loop's turn, or of the loop. */
enum flow { FLOW_ON, FLOW_CONTINUE, FLOW_BREAK };

static enum flow write_body(struct jinja_run *run, const struct jinja_node *node);

/* ---- names ----------------------------------------------------------------------------------------------- */

static void set(struct jinja_run *run, const struct jinja_node *target, struct jinja_value value)
{
    if (target->kind != NODE_ATTRIBUTE) {
        jinja_dict_set(run, run->frame->names, jinja_string(target->text), value);
        return;
    }
    const struct jinja_value of = jinja_evaluate(run, target->a);
    if (of.kind != JINJA_DICT || !of.dict->is_namespace)
        jinja_fail(run, "%.*s is no namespace: its members are not set", SLICE_ARG(target->a->text));
    else
        jinja_dict_set(run, of.dict, jinja_string(target->text), value);
}

static void set_target(struct jinja_run *run, const struct jinja_node *target, struct jinja_value value)
{
    if (target->kind != NODE_TUPLE) {
        set(run, target, value);
        return;
    }
    const struct jinja_list *items = jinja_items(run, &value);
    size_t i = 0;
    for (const struct jinja_node *name = target->body; name && run->code == 0; name = name->next, i++)
        if (i < items->count)
            set(run, name, items->items[i]);
        else
            jinja_fail(run, "there are fewer values than names");
    if (i < items->count)
        jinja_fail(run, "there are more values than names");
}

static struct jinja_frame *frame_in(struct jinja_run *run, struct jinja_frame *outer)
{
    struct jinja_frame *frame = jinja_alloc(run, sizeof(*frame));
    if (!frame)
        return outer;
    *frame = (struct jinja_frame){.outer = outer, .names = jinja_dict_new(run)};
    return frame;
}

/* The body's words, in a frame of its own within `outer`, with what `frame` has already. */
static struct jinja_value capture(struct jinja_run *run, const struct jinja_node *body, struct jinja_frame *frame)
{
    struct buffer text = {0}, *out = run->out;
    struct jinja_frame *before = run->frame;
    run->out = &text;
    run->frame = frame;
    write_body(run, body);
    run->out = out;
    run->frame = before;
    return jinja_string_of(run, &text);
}

/* ---- macros ---------------------------------------------------------------------------------------------- */

static const struct jinja_value *find_named(const struct jinja_arguments *given, struct slice name)
{
    for (size_t i = 0; i < given->named_count; i++)
        if (slice_equal(given->names[i], name))
            return &given->named[i];
    return NULL;
}

static void bind(struct jinja_run *run, const struct jinja_node *macro, const struct jinja_arguments *given)
{
    size_t place = 0, named = 0;
    for (const struct jinja_node *parameter = macro->a; parameter && run->code == 0;
         parameter = parameter->next, place++) {
        const struct jinja_value *found = place < given->count ? &given->list[place]
                                                               : find_named(given, parameter->text);
        struct jinja_value value = {.kind = JINJA_UNDEFINED, .text = parameter->text};
        named += place >= given->count && found;
        if (found)
            value = *found;
        else if (parameter->b)
            value = jinja_evaluate(run, parameter->b);
        jinja_dict_set(run, run->frame->names, jinja_string(parameter->text), value);
    }
    if (given->count > place || given->named_count > named)
        jinja_fail(run, "the macro %.*s takes no such argument", SLICE_ARG(macro->text));
}

struct jinja_value jinja_call_macro(struct jinja_run *run, const struct jinja_value *macro,
                                    const struct jinja_arguments *given)
{
    struct jinja_frame *frame = frame_in(run, macro->frame), *before = run->frame;
    if (run->code < 0)
        return jinja_undefined("");
    run->frame = frame;
    bind(run, macro->macro, given);
    const struct jinja_value said = capture(run, macro->macro->body, frame);
    run->frame = before;
    return said;
}

/* ---- loops ----------------------------------------------------------------------------------------------- */

/* The items that are gone through: all, or those of a condition. */
static const struct jinja_list *choose_items(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value over = jinja_evaluate(run, node->b);
    const struct jinja_list *items = run->code == 0 ? jinja_items(run, &over) : jinja_list_new(run);
    if (!node->c)
        return items;
    struct jinja_list *chosen = jinja_list_new(run);
    struct jinja_frame *frame = frame_in(run, run->frame), *before = run->frame;
    for (size_t i = 0; i < items->count && run->code == 0; i++) {
        run->frame = frame;
        set_target(run, node->a, items->items[i]);
        const struct jinja_value condition = jinja_evaluate(run, node->c);
        run->frame = before;
        if (jinja_is_true(&condition))
            jinja_list_add(run, chosen, items->items[i]);
    }
    return chosen;
}

static struct jinja_value neighbour(const struct jinja_list *items, size_t at, const char *name)
{
    return at < items->count ? items->items[at] : jinja_undefined(name);
}

static struct jinja_value loop_of(struct jinja_run *run, const struct jinja_list *items, size_t at)
{
    struct jinja_dict *loop = jinja_dict_new(run);
    const int64_t place = (int64_t)at, count = (int64_t)items->count;
    jinja_dict_put(run, loop, "index", jinja_integer(place + 1));
    jinja_dict_put(run, loop, "index0", jinja_integer(place));
    jinja_dict_put(run, loop, "revindex", jinja_integer(count - place));
    jinja_dict_put(run, loop, "revindex0", jinja_integer(count - place - 1));
    jinja_dict_put(run, loop, "first", jinja_bool(at == 0));
    jinja_dict_put(run, loop, "last", jinja_bool(place + 1 == count));
    jinja_dict_put(run, loop, "length", jinja_integer(count));
    jinja_dict_put(run, loop, "depth", jinja_integer(1)); /* of loops that call themselves, which there are not here */
    jinja_dict_put(run, loop, "depth0", jinja_integer(0));
    jinja_dict_put(run, loop, "previtem", at ? items->items[at - 1] : jinja_undefined("loop.previtem"));
    jinja_dict_put(run, loop, "nextitem", neighbour(items, at + 1, "loop.nextitem"));
    return jinja_dict_value(loop);
}

static enum flow write_turn(struct jinja_run *run, const struct jinja_node *node, const struct jinja_list *items,
                            size_t at)
{
    struct jinja_frame *frame = frame_in(run, run->frame);
    const struct jinja_value loop = loop_of(run, items, at);
    if (run->code < 0)
        return FLOW_BREAK;
    run->frame = frame;
    jinja_dict_put(run, frame->names, "loop", loop);
    set_target(run, node->a, items->items[at]);
    const enum flow flow = write_body(run, node->body);
    run->frame = frame->outer;
    return flow;
}

static enum flow write_for(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_list *items = choose_items(run, node);
    for (size_t i = 0; i < items->count && run->code == 0; i++)
        if (write_turn(run, node, items, i) == FLOW_BREAK)
            return FLOW_ON;
    if (items->count == 0 && node->other && run->code == 0)
        return write_body(run, node->other);
    return FLOW_ON;
}

/* ---- statements ------------------------------------------------------------------------------------------- */

static enum flow write_print(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value value = jinja_evaluate(run, node->a);
    jinja_write(run, &value, run->out);
    return FLOW_ON;
}

static enum flow write_if(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value condition = jinja_evaluate(run, node->a);
    const struct jinja_node *body = jinja_is_true(&condition) ? node->body : node->other;
    return body && run->code == 0 ? write_body(run, body) : FLOW_ON;
}

static enum flow do_set(struct jinja_run *run, const struct jinja_node *node)
{
    set_target(run, node->a, jinja_evaluate(run, node->b));
    return FLOW_ON;
}

static enum flow do_set_block(struct jinja_run *run, const struct jinja_node *node)
{
    struct jinja_frame *frame = frame_in(run, run->frame);
    set_target(run, node->a, capture(run, node->body, frame));
    return FLOW_ON;
}

static enum flow do_macro(struct jinja_run *run, const struct jinja_node *node)
{
    const struct jinja_value macro = {.kind = JINJA_CALLABLE, .frame = run->frame, .macro = node};
    jinja_dict_set(run, run->frame->names, jinja_string(node->text), macro);
    return FLOW_ON;
}

static enum flow write_text(struct jinja_run *run, const struct jinja_node *node)
{
    jinja_append(run, run->out, node->text.data, node->text.len);
    return FLOW_ON;
}

static enum flow write_scope(struct jinja_run *run, const struct jinja_node *node)
{
    return write_body(run, node->body);
}
static enum flow do_break(struct jinja_run *run, const struct jinja_node *node)
{
    return (void)run, (void)node, FLOW_BREAK;
}
static enum flow do_continue(struct jinja_run *run, const struct jinja_node *node)
{
    return (void)run, (void)node, FLOW_CONTINUE;
}

static enum flow (*const writers[])(struct jinja_run *run, const struct jinja_node *node) = {
    [NODE_TEXT] = write_text, [NODE_PRINT] = write_print,      [NODE_FOR] = write_for,  [NODE_IF] = write_if,
    [NODE_SET] = do_set,      [NODE_SET_BLOCK] = do_set_block, [NODE_MACRO] = do_macro, [NODE_SCOPE] = write_scope,
    [NODE_BREAK] = do_break,  [NODE_CONTINUE] = do_continue};

static enum flow write_body(struct jinja_run *run, const struct jinja_node *node)
{
    enum flow flow = FLOW_ON;
    for (; node && flow == FLOW_ON && run->code == 0; node = node->next) {
        if (jinja_enter(run, node->line))
            flow = writers[node->kind](run, node);
        jinja_leave(run);
    }
    return flow;
}

void jinja_write_all(struct jinja_run *run, const struct jinja_node *statements)
{
    if (write_body(run, statements) != FLOW_ON)
        jinja_fail(run, "break or continue outside of a loop");
}
