/*
 * body.h - what the dialects' readers share: a body is walked from place to place, and each place knows its path, which
 * begins every refusal: "messages[3].content[1].type: ...". Functions that return bool return false after a refusal;
 * the first one's sentence stays. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_BODY_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_BODY_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "workers/agents/proxy/said.h"

/* A request on its way out of its body. */
struct body {
    struct said_request *request;
    struct fail fail;
    bool is_open; /* the last message is in hand (body_messages.h), with these: */
    struct buffer text, thinking;
    size_t unfolded; /* bytes put in for what the body only names (anthropic_tools.h) */
    unsigned step;   /* what of it was read last, where the dialect minds; 0 when it begins */
};

/* A value and where it stands; the places that it stands in must outlive it. */
struct body_place {
    const struct body_place *in; /* NULL: the body itself */
    const char *key;             /* NULL: an element of a list */
    size_t at;
    const json_t *value; /* NULL: not there, or null */
};

struct body_place body_in(const struct body_place *in, const char *key);
struct body_place body_at(const struct body_place *list, size_t at);
/* Whether that word is what is there; nothing is refused. */
bool body_says(const struct body_place *in, const char *key, const char *word);

/* ---- refusals; all return false ---- */
bool body_refuse(struct body *body, const struct body_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "a string is expected, not a list", or that it is missing. */
bool body_refuse_kind(struct body *body, const struct body_place *place, const char *expected);
/* A word that is not known there, such as a type: images and other media by name. */
bool body_refuse_word(struct body *body, const struct body_place *word);
/* ... but where it is one of "these|words". */
bool body_one_of(struct body *body, const struct body_place *word, const char *words);
/* The same of each word of a list. */
bool body_each_one_of(struct body *body, const struct body_place *list, const char *words);
bool body_out_of_memory(struct body *body);

/* ---- what must not be there ---- */
/* Refused with the words, but where it is empty: false, "", [], {}. */
bool body_lacks(struct body *body, const struct body_place *in, const char *key, const char *words);
/* How many answers are wanted: none but one can be given. */
bool body_wants_one(struct body *body, const struct body_place *in, const char *key);

/* ---- values: what is not there is no refusal and leaves *ret as it was, unless it is needed ---- */
bool body_word(struct body *body, const struct body_place *in, const char *key, const char **ret); /* borrowed */
bool body_needed_word(struct body *body, const struct body_place *in, const char *key, const char **ret);
bool body_text(struct body *body, const struct body_place *in, const char *key, char **ret); /* owned, repaired */
bool body_name(struct body *body, const struct body_place *in, const char *key, char **ret); /* needed, not empty */
bool body_flag(struct body *body, const struct body_place *in, const char *key, bool *ret);
bool body_number(struct body *body, const struct body_place *in, const char *key, uint64_t *ret);
bool body_object(struct body *body, const struct body_place *place);
bool body_list(struct body *body, const struct body_place *place);
/* Each element of a list, in order; of none, if it is not there. */
bool body_each(struct body *body, const struct body_place *list,
               bool (*read)(struct body *body, const struct body_place *element));
/* The same with a word for all of them. */
bool body_each_with(struct body *body, const struct body_place *list,
                    bool (*read)(struct body *body, const struct body_place *element, const char *word),
                    const char *word);
/* A string's own copy, repaired; NULL: out of memory. */
char *body_copy(const json_t *string);

#endif
