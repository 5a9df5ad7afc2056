/*
 * offers.h - what a handler offers, as its handler.hello says it: agents, tools, evaluators and hooks by name and
 * version. Names that are built in are refused, for a task that says one means that one.
 */
#ifndef SLUICE_WORKERS_HANDLERS_WIRE_OFFERS_H
#define SLUICE_WORKERS_HANDLERS_WIRE_OFFERS_H

#include <jansson.h>

#include "schemas/task/task.h"

enum { OFFERS_MAX = 64, OFFER_VERSION_MAX = 32, OFFER_DOC_MAX = 4096, OFFER_PARAMETERS_MAX = 16384 };

struct offer {
    enum handler_role role;
    char name[HANDLER_NAME_MAX + 1], version[OFFER_VERSION_MAX + 1];
    char *doc;          /* "" where it has none */
    json_t *parameters; /* tool: a JSON Schema of an object; else NULL */
};

struct offers {
    struct offer list[OFFERS_MAX];
    size_t count;
};

/* False with a refusal; offers_finish it also then. */
bool offers_parse(struct slice json, struct offers *ret, struct refusal *no);
void offers_finish(struct offers *offers);
const struct offer *offers_find(const struct offers *offers, enum handler_role role, const char *name); /* NULL: none */

#endif
