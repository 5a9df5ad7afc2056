/* model_files.h - the files of a model's directory, each read and checked by itself. */
#ifndef SLUICE_WORKERS_ENGINES_MODELS_MODEL_FILES_H
#define SLUICE_WORKERS_ENGINES_MODELS_MODEL_FILES_H

#include "workers/engines/models/model_dir.h"

/* Fills in all of it but `url`. */
int model_files_read(struct model_dir *model, uint64_t context, struct fail *fail);

#endif
