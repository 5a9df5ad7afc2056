#include "workers/engines/jinja/reading/parse.h"

#include "workers/engines/jinja/reading/parse_expression.h"

/* Statements up to a block that begins with one of these words, which is next then; NULL ends the words. */
static struct jinja_node *parse_until(struct jinja_parser *parser, const char *const *ends);

static bool take_word(struct jinja_parser *parser, const char *word) { return jinja_take(parser, TOKEN_NAME, word); }

/* "{% WORD": what comes next, or not. */
static bool peeks_block(const struct jinja_parser *parser, const char *word)
{
    const struct jinja_token *next = jinja_peek(parser);
    return next->kind == TOKEN_BLOCK && slice_is(next[1].text, word) && next[1].kind == TOKEN_NAME;
}

static bool take_block(struct jinja_parser *parser, const char *word)
{
    const bool is_there = peeks_block(parser, word);
    parser->at += is_there ? 2 : 0;
    return is_there;
}

static void end_block(struct jinja_parser *parser) { jinja_want(parser, TOKEN_BLOCK_END, NULL); }

/* "{% WORD %}", where nothing else can be. */
static void want_block(struct jinja_parser *parser, const char *word)
{
    if (!take_block(parser, word))
        jinja_fail(parser->run, "{%% %s %%} is wanted", word);
    end_block(parser);
}

/* A name, a member of a namespace, or names in a row. */
static struct jinja_node *parse_target(struct jinja_parser *parser)
{
    const bool has_brackets = jinja_take(parser, TOKEN_OPERATOR, "(");
    struct jinja_node *node = jinja_node_new(parser, NODE_NAME), *first = node;
    node->text = jinja_want_name(parser);
    if (jinja_take(parser, TOKEN_OPERATOR, ".")) {
        node = jinja_node_new(parser, NODE_ATTRIBUTE);
        node->a = first;
        node->text = jinja_want_name(parser);
        return node;
    }
    if (jinja_peeks(parser, TOKEN_OPERATOR, ",")) {
        node = jinja_node_new(parser, NODE_TUPLE);
        node->body = first;
    }
    for (struct jinja_node *last = first; parser->run->code == 0 && jinja_take(parser, TOKEN_OPERATOR, ",");) {
        last->next = jinja_node_new(parser, NODE_NAME);
        last = last->next;
        last->text = jinja_want_name(parser);
    }
    if (has_brackets)
        jinja_want(parser, TOKEN_OPERATOR, ")");
    return node;
}

static void parse_for(struct jinja_parser *parser, struct jinja_node *node)
{
    static const char *const ends[] = {"else", "endfor", NULL}, *const end[] = {"endfor", NULL};
    node->kind = NODE_FOR;
    node->a = parse_target(parser);
    if (!take_word(parser, "in"))
        jinja_want(parser, TOKEN_NAME, "in");
    node->b = jinja_parse_plain(parser);
    if (take_word(parser, "if"))
        node->c = jinja_parse_expression(parser);
    end_block(parser);
    node->body = parse_until(parser, ends);
    if (take_block(parser, "else")) {
        end_block(parser);
        node->other = parse_until(parser, end);
    }
    want_block(parser, "endfor");
}

static void parse_if(struct jinja_parser *parser, struct jinja_node *node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL}, *const end[] = {"endif", NULL};
    node->kind = NODE_IF;
    node->a = jinja_parse_expression(parser);
    end_block(parser);
    node->body = parse_until(parser, ends);
    while (take_block(parser, "elif")) {
        node->other = jinja_node_new(parser, NODE_IF);
        node = node->other;
        node->a = jinja_parse_expression(parser);
        end_block(parser);
        node->body = parse_until(parser, ends);
        if (parser->run->code < 0)
            return;
    }
    if (take_block(parser, "else")) {
        end_block(parser);
        node->other = parse_until(parser, end);
    }
    want_block(parser, "endif");
}

static void parse_set(struct jinja_parser *parser, struct jinja_node *node)
{
    static const char *const end[] = {"endset", NULL};
    node->kind = NODE_SET;
    node->a = parse_target(parser);
    if (jinja_take(parser, TOKEN_OPERATOR, "=")) {
        node->b = jinja_parse_expression(parser);
        end_block(parser);
        return;
    }
    if (jinja_peeks(parser, TOKEN_OPERATOR, "|"))
        jinja_fail(parser->run, "a set block with a filter is not known here");
    node->kind = NODE_SET_BLOCK;
    end_block(parser);
    node->body = parse_until(parser, end);
    want_block(parser, "endset");
}

static void parse_macro(struct jinja_parser *parser, struct jinja_node *node)
{
    static const char *const end[] = {"endmacro", NULL};
    struct jinja_node **last = &node->a;
    node->kind = NODE_MACRO;
    node->text = jinja_want_name(parser);
    jinja_want(parser, TOKEN_OPERATOR, "(");
    while (parser->run->code == 0 && !jinja_take(parser, TOKEN_OPERATOR, ")")) {
        struct jinja_node *parameter = *last = jinja_node_new(parser, NODE_NAME);
        parameter->text = jinja_want_name(parser);
        if (jinja_take(parser, TOKEN_OPERATOR, "="))
            parameter->b = jinja_parse_expression(parser);
        if (!jinja_peeks(parser, TOKEN_OPERATOR, ")"))
            jinja_want(parser, TOKEN_OPERATOR, ",");
        last = &parameter->next;
    }
    end_block(parser);
    node->body = parse_until(parser, end);
    if (take_block(parser, "endmacro"))
        take_word(parser, NULL); /* it may say its name again */
    end_block(parser);
}

/* Training marks what an assistant says so; for the text it is nothing. */
static void parse_generation(struct jinja_parser *parser, struct jinja_node *node)
{
    static const char *const end[] = {"endgeneration", NULL};
    node->kind = NODE_SCOPE;
    end_block(parser);
    node->body = parse_until(parser, end);
    want_block(parser, "endgeneration");
}

static void parse_break(struct jinja_parser *parser, struct jinja_node *node)
{
    node->kind = NODE_BREAK;
    end_block(parser);
}

static void parse_continue(struct jinja_parser *parser, struct jinja_node *node)
{
    node->kind = NODE_CONTINUE;
    end_block(parser);
}

static const struct {
    const char *word;
    void (*parse)(struct jinja_parser *parser, struct jinja_node *node);
} blocks[] = {{"for", parse_for},
              {"if", parse_if},
              {"set", parse_set},
              {"macro", parse_macro},
              {"break", parse_break},
              {"continue", parse_continue},
              {"generation", parse_generation}};

static void parse_block(struct jinja_parser *parser, struct jinja_node *node)
{
    for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
        if (take_block(parser, blocks[i].word)) {
            blocks[i].parse(parser, node);
            return;
        }
    const struct slice word = jinja_peek(parser)[1].text;
    parser->run->line = jinja_peek(parser)->line;
    jinja_fail(parser->run, "the tag \"%.*s\" is not known here", (int)(word.len < 40 ? word.len : 40),
               (const char *)word.data);
}

static struct jinja_node *parse_statement(struct jinja_parser *parser)
{
    struct jinja_node *node = jinja_node_new(parser, NODE_TEXT);
    if (jinja_peeks(parser, TOKEN_BLOCK, NULL)) {
        parse_block(parser, node);
    } else if (jinja_take(parser, TOKEN_PRINT, NULL)) {
        node->kind = NODE_PRINT;
        node->a = jinja_parse_expression(parser);
        jinja_want(parser, TOKEN_PRINT_END, NULL);
    } else {
        node->text = jinja_peek(parser)->text;
        jinja_want(parser, TOKEN_TEXT, NULL);
    }
    return node;
}

static bool ends_here(const struct jinja_parser *parser, const char *const *ends)
{
    for (; *ends; ends++)
        if (peeks_block(parser, *ends))
            return true;
    return parser->run->code < 0 || jinja_peeks(parser, TOKEN_END, NULL);
}

static struct jinja_node *parse_until(struct jinja_parser *parser, const char *const *ends)
{
    struct jinja_node *first = NULL, **last = &first;
    const bool is_well = jinja_enter(parser->run, jinja_peek(parser)->line);
    while (is_well && !ends_here(parser, ends)) {
        *last = parse_statement(parser);
        last = &(*last)->next;
    }
    jinja_leave(parser->run);
    return first;
}

struct jinja_node *jinja_parse_all(struct jinja_parser *parser)
{
    static const char *const no_ends[] = {NULL};
    return parse_until(parser, no_ends);
}
