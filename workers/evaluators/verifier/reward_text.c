#include "workers/evaluators/verifier/reward_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/json/json_doc_look.h"

enum { SHOWN_MAX = 60, NODES_MAX = 4096 };

static const char the_reward[] = "reward";

/* ---- one number --------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at, *end;
    char *to; /* without underscores */
};

static bool take_sign(struct reader *reader)
{
    if (reader->at == reader->end || (*reader->at != '+' && *reader->at != '-'))
        return false;
    *reader->to++ = (char)*reader->at++;
    return true;
}

/* Digits, single underscores between them. */
static bool take_digits(struct reader *reader)
{
    const uint8_t *from = reader->at;
    while (reader->at < reader->end) {
        const bool joins = *reader->at == '_' && reader->at > from && reader->at + 1 < reader->end &&
                           isdigit(reader->at[-1]) && isdigit(reader->at[1]);
        if (!isdigit(*reader->at) && !joins)
            break;
        if (!joins)
            *reader->to++ = (char)*reader->at;
        reader->at++;
    }
    return reader->at > from;
}

static bool take_point(struct reader *reader)
{
    if (reader->at == reader->end || *reader->at != '.')
        return false;
    *reader->to++ = (char)*reader->at++;
    return true;
}

/* None is fine; one that is not whole is not. */
static bool take_exponent(struct reader *reader)
{
    if (reader->at == reader->end || (*reader->at != 'e' && *reader->at != 'E'))
        return true;
    *reader->to++ = (char)*reader->at++;
    take_sign(reader);
    return take_digits(reader);
}

static bool read_number(struct slice text, char *room, double *ret)
{
    struct reader reader = {text.data, text.data + text.len, room};
    take_sign(&reader);
    bool has_digits = take_digits(&reader);
    if (take_point(&reader))
        has_digits |= take_digits(&reader);
    if (!has_digits || !take_exponent(&reader) || reader.at != reader.end)
        return false;
    *reader.to = '\0';
    *ret = strtod(room, NULL);
    return true;
}

static bool is_not_finite(struct slice text)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    const size_t sign = text.len > 0 && (text.data[0] == '+' || text.data[0] == '-');
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (text.len - sign == strlen(words[i]) &&
            strncasecmp((const char *)text.data + sign, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

static void say_no_number(struct slice text, struct verdict *verdict)
{
    const struct slice shown = text_cut_slice(text, SHOWN_MAX);
    if (text.len == 0)
        verdict_say(verdict, "it is empty");
    else if (is_not_finite(text))
        verdict_say(verdict, "%.*s is not a finite number", SLICE_ARG(text));
    else
        verdict_say(verdict, "it holds %.*s%s, not one number", SLICE_ARG(shown), shown.len < text.len ? "..." : "");
}

void reward_txt_read(struct slice text, struct verdict *verdict)
{
    struct refusal no;
    double value;
    char room[REWARD_TXT_MAX + 1];
    if (text.len > REWARD_TXT_MAX) {
        verdict_say(verdict, "it is longer than %d bytes", REWARD_TXT_MAX);
        return;
    }
    const struct slice number = text_strip(text);
    if (!read_number(number, room, &value))
        say_no_number(number, verdict);
    else if (!isfinite(value))
        verdict_say(verdict, "its number is too large");
    else if (!verdict_add_part(verdict, the_reward, value, 1, &no) || !verdict_set_reward(verdict, value, &no))
        verdict_say(verdict, "%s", no.text);
}

/* ---- an object of numbers ------------------------------------------------------------------ */

static bool read_value(const struct json_doc_node *node, double *ret)
{
    if (node->kind == JSON_DOC_TRUE || node->kind == JSON_DOC_FALSE) {
        *ret = node->kind == JSON_DOC_TRUE;
        return true;
    }
    return json_doc_number(node, ret);
}

static bool add_parts(const struct json_doc *doc, struct verdict *verdict, struct refusal *no)
{
    const struct json_doc_node *at = json_doc_root(doc) + 1;
    for (uint32_t left = json_doc_root(doc)->count; left > 0; left--) {
        AUTO_BUFFER name = {0};
        double value;
        const struct json_doc_node *member = at++;
        if (!json_doc_string(doc, member, &name) || !buffer_append(&name, "", 1))
            return refuse(no, REFUSAL_TOO_LARGE, "", "out of memory");
        const char *text = (const char *)name.data;
        if (strlen(text) + 1 != name.len)
            return refuse(no, REFUSAL_BAD_NAME, "", "a name in it holds a NUL");
        if (!read_value(at, &value))
            return refuse(no, REFUSAL_WRONG_TYPE, "", "%.60s is not a number", text);
        if (!verdict_add_part(verdict, text, value, 1, no))
            return false;
        at = doc->nodes + at->next;
    }
    return true;
}

static bool is_the_reward(const struct verdict_part *part) { return strcmp(part->name, the_reward) == 0; }

/* What each is of the reward, and that. */
static bool weigh(struct verdict *verdict, struct refusal *no)
{
    double sum = 0;
    const struct verdict_part *one = NULL;
    for (size_t i = 0; i < verdict->part_count; i++) {
        sum += verdict->parts[i].value;
        one = is_the_reward(&verdict->parts[i]) ? &verdict->parts[i] : one;
    }
    for (size_t i = 0; i < verdict->part_count; i++)
        verdict->parts[i].weight = one ? is_the_reward(&verdict->parts[i]) : 1.0 / (double)verdict->part_count;
    return verdict_set_reward(verdict, one ? one->value : sum / (double)verdict->part_count, no);
}

static void read_object(const struct json_doc *doc, struct verdict *verdict)
{
    struct refusal no = {0};
    const struct json_doc_node *root = json_doc_root(doc);
    if (root->kind != JSON_DOC_OBJECT)
        verdict_say(verdict, "it holds no object of names and numbers");
    else if (root->count == 0)
        verdict_say(verdict, "its object is empty");
    else if (!add_parts(doc, verdict, &no) || !weigh(verdict, &no))
        verdict_say(verdict, "%s", no.text);
}

void reward_json_read(struct slice text, struct verdict *verdict)
{
    struct json_doc doc;
    struct fail fail = {0};
    if (text.len > REWARD_JSON_MAX) {
        verdict_say(verdict, "it is longer than %d bytes", REWARD_JSON_MAX);
        return;
    }
    if (text_strip(text).len == 0) {
        verdict_say(verdict, "it is empty");
        return;
    }
    if (json_doc_parse_up_to(text, NODES_MAX, &doc, &fail) < 0)
        verdict_say(verdict, "%s", fail.text);
    else
        read_object(&doc, verdict);
    json_doc_finish(&doc);
}
