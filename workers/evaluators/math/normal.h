/*
 * evaluators/math/normal.h - one way to write what LaTeX and people write in many:
 *   \dfrac12, \frac{1}{2}, 1/2     1/2          2\frac13         "2 1/3"
 *   \left( \right) \, \! $ {,}     gone         \times \cdot ×   *
 *   \text{ cm}                     between MATH_TEXT_OPEN and MATH_TEXT_CLOSE
 *   \{ \}                          MATH_SET_OPEN and MATH_SET_CLOSE
 *   90^\circ, \$5                  90, 5        x^{2}            x^2
 * Blanks go, but for one between two digits. What is not known stays as it is.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_MATH_NORMAL_H
#define SLUICE_WORKERS_EVALUATORS_MATH_NORMAL_H

#include "common/base/slice.h"

enum { MATH_TEXT_OPEN = 1, MATH_TEXT_CLOSE = 2, MATH_SET_OPEN = 3, MATH_SET_CLOSE = 4, MATH_DEPTH_MAX = 32 };

/*
 * The normal form, which the caller frees. NULL: nested deeper than MATH_DEPTH_MAX, braces that
 * are never closed, a command without its argument, or no memory.
 */
char *math_normalize(struct slice text);
/* Takes the commas (and blanks) out of 1,000 and -12,345.6 in place; anything else is left alone.
 */
void math_drop_thousands(char *text);

#endif
