/* evaluators/math/parse/units.h - units by one name: metre, meters and m are m. */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_PARSE_UNITS_H
#define SLUICE_WORKERS_EVALUATORS_MATH_PARSE_UNITS_H

#include "common/base/slice.h"

/* The name of a unit that may stand without \text{}, or NULL. */
const char *unit_name(struct slice word);

#endif
