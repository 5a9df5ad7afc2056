#include "workers/evaluators/math/parse/units.h"

#include <strings.h>

/* clang-format off */
/* Units that may stand without \text{}; the first of a row is its name. Plurals are understood. */
static const char *const units[][4] = {
    {"cm", "centimeter", "centimetre"}, {"mm", "millimeter", "millimetre"},
    {"km", "kilometer", "kilometre"},   {"m", "meter", "metre"},
    {"in", "inch", "inche"},            {"ft", "foot", "feet"},
    {"mile", "mi"},                     {"yard", "yd"},
    {"kg", "kilogram"},                 {"g", "gram"},
    {"pound", "lb"},                    {"ounce", "oz"},
    {"second", "sec", "s"},             {"minute", "min"},
    {"hour", "hr", "h"},                {"day"},
    {"week"},                           {"month"},
    {"year", "yr"},                     {"degree", "deg"},
    {"radian", "rad"},                  {"dollar", "usd"},
    {"cent"},                           {"unit"},
    {"squareunit", "sq.unit"},          {"cubicunit"},
    {"liter", "litre", "l"},            {"mph"},
    {"point"},                          {"people", "person"},
    {"way"},
};
/* clang-format on */

const char *unit_name(struct slice word)
{
    size_t singular = word.len > 2 && word.data[word.len - 1] == 's' ? word.len - 1 : word.len;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        for (size_t k = 0; k < 4 && units[i][k]; k++) {
            size_t known = strlen(units[i][k]);
            if ((known == word.len || known == singular) &&
                strncasecmp(units[i][k], (const char *)word.data, known) == 0)
                return units[i][0];
        }
    return NULL;
}
