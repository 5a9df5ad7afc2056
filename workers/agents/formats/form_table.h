/* form_table.h - the rows of the table in forms.c. */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_FORM_TABLE_H
#define SLUICE_WORKERS_AGENTS_FORMATS_FORM_TABLE_H

#include "workers/agents/formats/form.h"

extern const struct form form_hermes, form_llama, form_openhands, form_qwen_coder;

#endif
