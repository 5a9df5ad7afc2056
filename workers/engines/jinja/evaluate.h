/* evaluate.h - what an expression comes to, and the names that it sees. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_EVALUATE_H
#define SLUICE_WORKERS_ENGINES_JINJA_EVALUATE_H

#include "workers/engines/jinja/calls/call.h"
#include "workers/engines/jinja/reading/tree.h"

/* Names set in one place: those further out are seen as well. */
struct jinja_frame {           /* the rendering's memory: a macro keeps the one that it is made in */
    struct jinja_frame *outer; /* NULL: the template's own */
    struct jinja_dict *names;
};

struct jinja_value jinja_evaluate(struct jinja_run *run, const struct jinja_node *node);

#endif
