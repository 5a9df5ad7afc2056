/*
 * word_count.c - a handler in C: the tool word_count, and the evaluator brief, which gives 1 for an answer of at most
 * 20 words and less for a longer one. It speaks lines of JSON on standard input and output, and needs a JSON library
 * alone.
 *
 *     cc word_count.c -ljansson -o word_count
 *     sluice up --engine URL --handler mine=json:./word_count
 *     {"task": "t", "prompt": "What is the sea?", "agent": {"kind": "tools", "tools": ["word_count"]},
 *      "eval": {"kind": "brief"}}
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BRIEF_WORDS = 20 };

static const char hello[] =
    "{\"type\": \"handler.hello\", \"protocol\": 1, \"offers\": ["
    "{\"role\": \"evaluator\", \"name\": \"brief\", \"version\": \"1\"},"
    "{\"role\": \"tool\", \"name\": \"word_count\", \"version\": \"1\", \"doc\": \"Counts the words of a text.\","
    " \"parameters\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, \"required\": "
    "[\"text\"]}}]}";

static int count_words(const char *text)
{
    int count = 0, is_inside = 0;
    for (; text && *text; text++) {
        count += !is_inside && !isspace((unsigned char)*text);
        is_inside = !isspace((unsigned char)*text);
    }
    return count;
}

/* Each message is a line, and must leave at once. */
static void say(json_t *message)
{
    json_dumpf(message, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(message);
}

static void evaluate(json_int_t id, const json_t *begin)
{
    const int words = count_words(json_string_value(json_object_get(begin, "answer")));
    const double reward = words <= BRIEF_WORDS ? 1 : (double)BRIEF_WORDS / words;
    say(json_pack("{s:s, s:I, s:f, s:{s:i}}", "type", "handler.score", "id", id, "reward", reward, "metrics", "words",
                  words));
}

static void call(json_int_t id, const json_t *begin)
{
    char text[64];
    const json_t *arguments = json_object_get(begin, "arguments");
    snprintf(text, sizeof(text), "%d words", count_words(json_string_value(json_object_get(arguments, "text"))));
    say(json_pack("{s:s, s:I, s:s}", "type", "handler.output", "id", id, "text", text));
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    puts(hello);
    fflush(stdout);
    while (getline(&line, &size, stdin) > 0) {
        json_t *message = json_loads(line, 0, NULL);
        const char *type = json_string_value(json_object_get(message, "type"));
        const char *role = json_string_value(json_object_get(message, "role"));
        const json_int_t id = json_integer_value(json_object_get(message, "id"));
        if (type && role && strcmp(type, "handler.begin") == 0)
            (strcmp(role, "tool") == 0 ? call : evaluate)(id, message);
        json_decref(message); /* handler.cancel: every job here has ended already */
    }
    free(line);
    return 0;
}
