/*
 * model_dir_world.h - a model's directory for the scripted engine: its tokenizer of bytes and four special tokens, and
 * ChatML. In a folder of its own, which goes with it.
 */
#ifndef SLUICE_TESTS_WORKERS_ENGINES_MODEL_DIR_WORLD_H
#define SLUICE_TESTS_WORKERS_ENGINES_MODEL_DIR_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/workers/tokenizer/tokenizer_file.h"
#include "workers/engines/models/model_dir.h"

#define CHATML                                                                                                         \
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "  \
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

struct model_folder {
    char path[64];
};

static inline void folder_write(const struct model_folder *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void folder_remove(const struct model_folder *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    unlink(path);
}

static inline void folder_open(struct model_folder *folder)
{
    *folder = (struct model_folder){"/tmp/sluice-model-XXXXXX"};
    assert_non_null(mkdtemp(folder->path));
    AUTO_FREE char *tokenizer = file_write(&(struct file_parts){
        .added = ADDED("256", "<|im_start|>", "true") "," ADDED("257", "<|im_end|>", "true") "," ADDED(
            "258", "<|endoftext|>", "true") "," ADDED("259", "<s>", "true")});
    folder_write(folder, "tokenizer.json", tokenizer);
    folder_write(folder, "chat_template.jinja", CHATML);
    folder_write(folder, "tokenizer_config.json",
                 "{\"eos_token\": {\"content\": \"<|im_end|>\"}, \"model_max_length\": 1e30}");
    folder_write(folder, "config.json", "{\"max_position_embeddings\": 4096, \"model_type\": \"scripted\"}");
    folder_write(folder, "generation_config.json", "{\"eos_token_id\": [257, 258]}");
}

static inline void folder_close(const struct model_folder *folder)
{
    static const char *const names[] = {"tokenizer.json", "chat_template.jinja",    "tokenizer_config.json",
                                        "config.json",    "generation_config.json", "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        folder_remove(folder, names[i]);
    assert_int_equal(rmdir(folder->path), 0);
}

#endif
