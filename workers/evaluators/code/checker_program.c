#include "workers/evaluators/code/checker_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/inside/driver.h"

enum { OUTPUT_MAX = 4096 };

/* An exception is no verdict, though Python's exit status of it is 1. */
static const char python[] = "exec python3 -I -c 'import os, runpy, sys, traceback\n"
                             "sys.argv = sys.argv[1:]\n"
                             "try:\n"
                             "    runpy.run_path(sys.argv[0], run_name=\"__main__\")\n"
                             "except SystemExit:\n"
                             "    raise\n"
                             "except BaseException:\n"
                             "    traceback.print_exc()\n"
                             "    sys.stdout.flush()\n"
                             "    sys.stderr.flush()\n"
                             "    os._exit(3)\n' ";

static char *command_of(const char *path)
{
    AUTO_BUFFER command = {0};
    const size_t len = strlen(path);
    buffer_append_str(&command, len > 3 && strcmp(path + len - 3, ".py") == 0 ? python : "exec ");
    if (path[0] != '/') /* of the working directory, and no word of bash's */
        buffer_append_str(&command, "./");
    buffer_append_quoted(&command, path);
    buffer_append_str(&command, " /run/sluice/input /run/sluice/output /run/sluice/expected");
    return buffer_take_str(&command);
}

int checker_program_open(struct checker_program *program, struct job *job, struct fail *fail)
{
    program->stage.part = STAGE_EVALUATORS;
    program->command = command_of(job->task->eval_checker_program);
    return program->command ? evaluator_sandbox_open_fresh(&program->stage, job, fail) : fail_memory(fail);
}

static int put(struct checker_program *program, const char *name, struct slice content, struct fail *fail)
{
    const struct program file = {name, content.data ? content.data : (const uint8_t *)"", &content.len};
    return driver_install(program->stage.sandbox, &file, fail);
}

/* Its last line. */
static void take_words(const struct sandbox_output *output, char *why, size_t why_size)
{
    struct slice said = text_trim(slice_of(output->text, output->len));
    const uint8_t *end = said.len ? memrchr(said.data, '\n', said.len) : NULL;
    if (end)
        said = slice_of(end + 1, said.len - (size_t)(end + 1 - said.data));
    const struct slice shown = text_cut_slice(said, why_size - 1);
    snprintf(why, why_size, "%.*s", SLICE_ARG(shown));
    text_sanitize(why);
}

static enum checker_says judge(const struct sandbox_output *output, const char *breach, char *why, size_t why_size)
{
    char words[256];
    take_words(output, words, sizeof(words));
    const bool is_verdict = !breach && !output->timed_out && output->status <= 2;
    if (is_verdict && output->status == 0)
        return CHECKER_RIGHT;
    if (is_verdict)
        snprintf(why, why_size, "%s%s%s", output->status == 1 ? "wrong output" : "wrong form of output",
                 *words ? ": " : "", words);
    else if (breach)
        snprintf(why, why_size, "eval.checker_program went over its %s limit", breach);
    else if (output->timed_out)
        snprintf(why, why_size, "eval.checker_program was stopped after %.1f s: %s", output->seconds, words);
    else
        snprintf(why, why_size, "eval.checker_program is at fault, its exit status is %d: %s", output->status, words);
    return is_verdict ? CHECKER_WRONG : CHECKER_AT_FAULT;
}

int checker_program_ask(struct checker_program *program, const struct task *task, struct slice input,
                        struct slice output, struct slice answer, char *why, size_t why_size, struct fail *fail)
{
    struct sandbox_output said = {0};
    int code = put(program, "input", input, fail);
    if (code == 0)
        code = put(program, "output", output, fail);
    if (code == 0)
        code = put(program, "expected", answer, fail);
    if (code == 0)
        code = sandbox_command(program->stage.sandbox, program->command, stage_command_ms(task->limits.command_s),
                               OUTPUT_MAX, &said, fail);
    const char *breach = program->stage.sandbox ? sandbox_breach(program->stage.sandbox) : NULL;
    if (code == 0 || breach)
        code = (int)judge(&said, breach, why, why_size);
    free(said.text);
    return code;
}

void checker_program_close(struct checker_program *program)
{
    free(program->command);
    program->command = NULL;
    stage_sandbox_close(&program->stage);
}
