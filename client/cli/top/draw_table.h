/* draw_table.h - the lower part: the panel's rows in columns, or all that is known of the chosen one. */
#ifndef SLUICE_CLIENT_CLI_TOP_DRAW_TABLE_H
#define SLUICE_CLIENT_CLI_TOP_DRAW_TABLE_H

#include "client/cli/top/draw.h"

/* The heading and at most `rows_max` rows. */
void draw_table(struct screen *screen, const struct view *view, const struct rows *rows, size_t rows_max);
/* All keys of the chosen row, and the rollouts that are there; scrolled as the view says, on `rows_max` rows. */
void draw_details(struct screen *screen, const struct model *model, struct view *view, const struct rows *rows,
                  size_t rows_max);

#endif
