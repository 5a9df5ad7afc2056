/* answers_section.h - the section of docs/tasks.md on answers that are compared: math, choice and exact. */
#ifndef SLUICE_SCHEMAS_DESCRIBE_ANSWERS_SECTION_H
#define SLUICE_SCHEMAS_DESCRIBE_ANSWERS_SECTION_H

extern const char answers_section[];

#endif
