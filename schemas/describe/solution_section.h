/* solution_section.h - the section of docs/tasks.md on `solution`, and on who is shown what of a task. */
#ifndef SLUICE_SCHEMAS_DESCRIBE_SOLUTION_SECTION_H
#define SLUICE_SCHEMAS_DESCRIBE_SOLUTION_SECTION_H

extern const char solution_section[];

#endif
