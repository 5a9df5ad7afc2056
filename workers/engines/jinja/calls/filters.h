/* filters.h - each filter is a function; the table that has them is filters.c's. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_CALLS_FILTERS_H
#define SLUICE_WORKERS_ENGINES_JINJA_CALLS_FILTERS_H

#include "workers/engines/jinja/calls/call.h"

#define JINJA_FILTER(name)                                                                                             \
    struct jinja_value jinja_filter_##name(struct jinja_run *run, const struct jinja_value *of,                        \
                                           const struct jinja_arguments *given)

JINJA_FILTER(trim);
JINJA_FILTER(upper);
JINJA_FILTER(lower);
JINJA_FILTER(capitalize);
JINJA_FILTER(title);
JINJA_FILTER(string);
JINJA_FILTER(safe);
JINJA_FILTER(replace);
JINJA_FILTER(indent);
JINJA_FILTER(tojson);
JINJA_FILTER(join);
JINJA_FILTER(to_int);
JINJA_FILTER(to_float);
JINJA_FILTER(absolute);
JINJA_FILTER(length);
JINJA_FILTER(standard);
JINJA_FILTER(items_of);
JINJA_FILTER(first);
JINJA_FILTER(last);
JINJA_FILTER(to_list);
JINJA_FILTER(reverse);
JINJA_FILTER(sort);
JINJA_FILTER(dictsort);
JINJA_FILTER(least);
JINJA_FILTER(most);
JINJA_FILTER(sum);

/* The one of that name. */
struct jinja_value jinja_filter(struct jinja_run *run, struct slice name, const struct jinja_value *of,
                                const struct jinja_arguments *given);

#endif
