#include "schemas/describe/cells.h"

#include <stdio.h>

/* In Markdown a '<' would begin a tag, and a '|' end a table's cell. */
void put_text(const char *text)
{
    for (; *text; text++)
        *text == '<' ? fputs("&lt;", stdout) : *text == '|' ? fputs("\\|", stdout) : putchar(*text);
}

void put_last_cell(const char *text)
{
    printf("| ");
    put_text(text);
    puts(" |");
}
