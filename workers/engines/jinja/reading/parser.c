#include "workers/engines/jinja/reading/parser.h"

struct jinja_node *jinja_node_new(struct jinja_parser *parser, enum jinja_node_kind kind)
{
    struct jinja_node *node = jinja_alloc(parser->run, sizeof(*node));
    if (!node)
        return &parser->nothing;
    node->kind = kind;
    node->line = jinja_peek(parser)->line;
    return node;
}

const struct jinja_token *jinja_peek(const struct jinja_parser *parser)
{
    static const struct jinja_token end = {.kind = TOKEN_END};
    return parser->run->code == 0 && parser->at < parser->tokens.count ? &parser->tokens.list[parser->at] : &end;
}

bool jinja_peeks(const struct jinja_parser *parser, enum jinja_token_kind kind, const char *text)
{
    const struct jinja_token *token = jinja_peek(parser);
    return token->kind == kind && (!text || slice_is(token->text, text));
}

bool jinja_take(struct jinja_parser *parser, enum jinja_token_kind kind, const char *text)
{
    const bool is_there = jinja_peeks(parser, kind, text);
    parser->at += is_there;
    return is_there;
}

/* With what is there in place of it. */
void jinja_refuse_token(struct jinja_parser *parser, const char *wanted)
{
    const struct jinja_token *token = jinja_peek(parser);
    const bool is_end = token->kind == TOKEN_BLOCK_END || token->kind == TOKEN_PRINT_END || token->kind == TOKEN_END;
    if (parser->run->code == 0)
        parser->run->line = token->line;
    jinja_fail(parser->run, "%s is wanted, not %s%.*s%s", wanted, is_end ? "" : "\"",
               is_end ? 7 : (int)(token->text.len < 40 ? token->text.len : 40),
               is_end ? "the end" : (const char *)token->text.data, is_end ? "" : "\"");
}

void jinja_want(struct jinja_parser *parser, enum jinja_token_kind kind, const char *text)
{
    if (!jinja_take(parser, kind, text))
        jinja_refuse_token(parser, text                      ? text
                                   : kind == TOKEN_BLOCK_END ? "%}"
                                   : kind == TOKEN_PRINT_END ? "}}"
                                                             : "a name");
}

struct slice jinja_want_name(struct jinja_parser *parser)
{
    const struct slice text = jinja_peek(parser)->text;
    jinja_want(parser, TOKEN_NAME, NULL);
    return text;
}
