/* cells.h - cells of a table in Markdown, written to stdout. */
#ifndef SLUICE_SCHEMAS_DESCRIBE_CELLS_H
#define SLUICE_SCHEMAS_DESCRIBE_CELLS_H

void put_text(const char *text);
/* With the bars around it, and the line's end. */
void put_last_cell(const char *text);

#endif
