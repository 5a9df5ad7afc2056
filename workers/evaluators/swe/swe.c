/*
 * The evaluator "swe": the agent's patch of a repository is taken from the files that it left, applied in a sandbox
 * that has none of them, and judged by tests (swe_verdict.h).
 *
 * Nothing of the agent's decides how its patch is taken: of its layer, only the repository's working tree stands in the
 * sandbox in which git is run, without anything named .git; programs, settings and history are those of image and init.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/files/file_give.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/evaluators/evaluators.h"
#include "workers/evaluators/swe/swe_verdict.h"
#include "workers/files/dirtree.h"
#include "workers/inside/inside.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/command.h"
#include "workers/stages/sandbox/stage_confirm.h"

enum {
    PATCH_MAX = 16 << 20, /* bytes of an agent's patch */
    LOG_MAX = 32 << 20,   /* of what the tests print: its beginning and its end are read */
    WITNESS_MAX = 32 << 20,
    OUTPUT_MAX = 65536, /* of a command of ours */
    TAIL_MAX = 1200
};

struct swe_job {
    struct job *job;
    const struct task_swe *swe;
    struct verdict verdict;
    struct paths tests; /* files of the test patch */
    struct buffer patch;
    struct patch_kept kept;
    struct swe_run run;
    struct buffer witness;
};

static void finish(struct swe_job *swe)
{
    verdict_finish(&swe->verdict);
    paths_finish(&swe->tests);
    buffer_finish(&swe->patch);
    patch_kept_finish(&swe->kept);
    buffer_finish(&swe->witness);
}

static void measure(struct swe_job *swe, const char *name, size_t value)
{
    verdict_add_metric(&swe->verdict, name, (double)value, NULL);
}

/* ---- a command of ours ---------------------------------------------------------------------------- */

struct command {
    struct buffer text;
    int status; /* 128: it was killed or stopped */
    char output[TAIL_MAX + 1];
};

/* Runs it and clears its text. 0 or negative errno. */
static int run_ours(struct swe_job *swe, struct stage_sandbox *stage, struct command *command, struct fail *fail)
{
    struct sandbox_output output = {0};
    AUTO_FREE char *text = buffer_take_str(&command->text);
    int code = text ? sandbox_command(stage->sandbox, text, stage_command_ms(swe->job->task->limits.eval_s), OUTPUT_MAX,
                                      &output, fail)
                    : fail_memory(fail);
    if (code == 0) {
        command->status = output.timed_out || output.status >= 256 ? 128 : output.status;
        snprintf(command->output, sizeof(command->output), "%s", stage_output_tail(&output, TAIL_MAX));
    }
    free(output.text);
    return code;
}

/* Each of these says whether to go on; if not, the job has ended. */

static bool end_failed(struct swe_job *swe, const struct stage_sandbox *stage, int code, const struct fail *fail)
{
    stage_end_failed(swe->job, stage, BLAME_EVALUATOR, code, fail);
    return false;
}

static bool end_with(struct swe_job *swe, bool has_reward, const char *why, const char *output)
{
    if (has_reward)
        verdict_set_reward(&swe->verdict, 0, NULL);
    verdict_say(&swe->verdict, "%s%s%s%s", has_reward ? "not resolved: " : "the evaluator is broken: ", why,
                *output ? ": " : "", output);
    evaluator_end(swe->job, &swe->verdict);
    return false;
}

static bool end_breach(struct swe_job *swe, const struct stage_sandbox *stage)
{
    char why[96];
    snprintf(why, sizeof(why), "it went over its %s limit", sandbox_breach(stage->sandbox));
    return end_with(swe, false, why, "");
}

static bool end_status(struct swe_job *swe, const struct stage_sandbox *stage, const struct command *command)
{
    if (sandbox_breach(stage->sandbox))
        return end_breach(swe, stage);
    if (command->status == SCRIPT_NO_REPOSITORY)
        return end_with(swe, false, "eval.swe.repository is not a git repository with a commit, by its real path",
                        swe->swe->repository);
    if (command->status == SCRIPT_NO_BASE)
        return end_with(swe, false, "the repository lacks eval.swe.base_commit", swe->swe->base_commit);
    return end_with(swe, false, "git failed", command->output);
}

static void in_run(const struct stage_sandbox *stage, const char *name, char path[static PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", sandbox_run_path(stage->sandbox), name);
}

/* ---- files ----------------------------------------------------------------------------------------- */

static int put(struct stage_sandbox *stage, bool is_output, const char *name, struct slice content, struct fail *fail)
{
    const int dir = is_output ? sandbox_outputs_dir(stage->sandbox) : sandbox_commands_dir(stage->sandbox);
    return file_give(dir, name, is_output ? 0666 : 0444, content, fail);
}

/* Of a regular file among the outputs at most `max` bytes; nothing where there is none. */
static int take(struct stage_sandbox *stage, const char *name, size_t max, struct buffer *ret, struct fail *fail)
{
    struct stat it;
    AUTO_CLOSE int fd = openat(sandbox_outputs_dir(stage->sandbox), name,
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &it) < 0 || !S_ISREG(it.st_mode))
        return 0;
    const size_t size = (size_t)it.st_size < max ? (size_t)it.st_size : max;
    return evaluator_file_read(fd, 0, size, ret, fail);
}

static bool has_output(struct stage_sandbox *stage, const char *name)
{
    return faccessat(sandbox_outputs_dir(stage->sandbox), name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- taking the patch ---------------------------------------------------------------------------------- */

static int open_agents(struct swe_job *swe, struct stage_sandbox *stage, struct fail *fail)
{
    int code = stage_sandbox_find_image(stage, swe->job, fail);
    if (code == 0)
        code = stage_sandbox_add_init(stage, swe->job, fail);
    if (code == 0)
        code = stage_sandbox_add_run_below(stage, swe->job, swe->swe->repository, fail);
    return code < 0 ? code : stage_sandbox_open(stage, swe->job, fail);
}

static bool take_patch_in(struct swe_job *swe, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    struct command command = {.status = 0};
    char path[PATH_MAX];
    int code = open_agents(swe, stage, &fail);
    job_begin_work(swe->job);
    if (code == 0) {
        in_run(stage, "out/patch", path);
        script_take_patch(swe->swe, path, PATCH_MAX + 1, &command.text);
        code = run_ours(swe, stage, &command, &fail);
    }
    if (code < 0)
        return end_failed(swe, stage, code, &fail);
    if (command.status == SCRIPT_NO_REPOSITORY)
        return true; /* the agent's doing, or the image's: what is without its files will tell */
    if (command.status != 0)
        return end_status(swe, stage, &command);
    code = take(stage, "patch", PATCH_MAX + 1, &swe->patch, &fail);
    return code == 0 || end_failed(swe, stage, code, &fail);
}

static bool take_patch(struct swe_job *swe)
{
    struct stage_sandbox stage = {.part = STAGE_EVALUATORS};
    const bool good = take_patch_in(swe, &stage);
    if (good)
        swe->job->result.outcome = OUTCOME_OK;
    stage_confirm(swe->job, &stage); /* where it is the node that is broken, that is why git fails */
    stage_sandbox_close(&stage);
    return good && swe->job->result.outcome == OUTCOME_OK;
}

/* ---- what of it counts ------------------------------------------------------------------------------------ */

static int keep_work(void *arg, const atomic_bool *stop)
{
    struct swe_job *swe = arg;
    (void)stop;
    if (swe->swe->test_patch)
        patch_list_files(slice_from_str(swe->swe->test_patch), &swe->tests);
    const bool good = patch_keep(buffer_peek(&swe->patch), swe->swe, &swe->tests, &swe->kept);
    return good && !swe->tests.failed ? 0 : -EBADMSG;
}

static bool keep_patch(struct swe_job *swe)
{
    struct fail fail = {0};
    if (swe->patch.len > PATCH_MAX)
        return end_with(swe, true, "the patch is larger than 16 MiB", "");
    if (!verdict_set_patch(&swe->verdict, buffer_peek(&swe->patch))) {
        job_set_outcome(swe->job, OUTCOME_INFRA, "the patch was not kept: %s", strerror(ENOMEM));
        return false;
    }
    int code = offload_run(keep_work, swe, &fail);
    if (code == -EBADMSG)
        return end_with(swe, true, "the patch cannot be read", "");
    if (code < 0) {
        job_set_outcome(swe->job, OUTCOME_INFRA, "the patch was not read: %s", fail.text);
        return false;
    }
    measure(swe, "patch_bytes", swe->kept.patch.len);
    measure(swe, "patch_files", swe->kept.files.count);
    measure(swe, "changed_test_files", swe->kept.tests.count);
    measure(swe, "changed_protected_files", swe->kept.is_protected.count);
    buffer_finish(&swe->patch);
    return true;
}

/* ---- applying it, and the tests ---------------------------------------------------------------------------- */

static bool make_nonce(char out[static NONCE_SIZE])
{
    uint8_t bytes[NONCE_SIZE / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static int install(struct swe_job *swe, struct stage_sandbox *stage, struct fail *fail)
{
    const char *tests = swe->swe->test_patch ? swe->swe->test_patch : "";
    swe->run.has_witness = swe_wants_witness(swe->swe);
    if (!make_nonce(swe->run.nonce) || !make_nonce(swe->run.witness_nonce) ||
        getrandom(&swe->run.seed, sizeof(swe->run.seed), 0) != sizeof(swe->run.seed))
        return fail_set(fail, -errno, "no random numbers: %s", strerror(errno));
    int code = put(stage, false, "agent.patch", buffer_peek(&swe->kept.patch), fail);
    if (code == 0)
        code = put(stage, false, "tests.patch", slice_from_str(tests), fail);
    if (code == 0 && swe->run.has_witness)
        code = put(stage, false, "swe_witness.py", slice_of(swe_witness_py, swe_witness_py_len), fail);
    if (code == 0 && swe->run.has_witness)
        code = put(stage, true, "swe_nonce", slice_from_str(swe->run.witness_nonce), fail);
    return code;
}

/* 1: it is applied; 0: the job has ended; negative errno. */
static int apply(struct swe_job *swe, struct stage_sandbox *stage, struct fail *fail)
{
    struct command command = {.status = 0};
    char path[PATH_MAX];
    script_check(swe->swe, &command.text);
    int code = run_ours(swe, stage, &command, fail);
    if (code < 0)
        return code;
    if (command.status != 0)
        return end_status(swe, stage, &command);
    if (swe->kept.patch.len == 0) {
        const bool was_more = swe->kept.tests.count > 0 || swe->kept.is_protected.count > 0;
        return end_with(swe, true,
                        was_more ? "it changes nothing but files of the tests or protected ones" : "the patch is empty",
                        "");
    }
    in_run(stage, "agent.patch", path);
    script_apply(swe->swe, path, &swe->kept.made, &command.text);
    code = run_ours(swe, stage, &command, fail);
    if (code == 0 && command.status != 0)
        return sandbox_breach(stage->sandbox) ? end_status(swe, stage, &command)
                                              : end_with(swe, true, "the patch does not apply", command.output);
    return code < 0 ? code : 1;
}

static int judge_work(void *arg, const atomic_bool *stop)
{
    struct swe_job *swe = arg;
    (void)stop;
    swe_judge(swe->swe, &swe->run, &swe->verdict);
    return 0;
}

static int judge(struct swe_job *swe, struct stage_sandbox *stage, const struct sandbox_output *output,
                 struct fail *fail)
{
    swe->run.log = slice_of(output->text, output->len);
    swe->run.is_cut = output->total > output->len;
    swe->run.timed_out = output->timed_out;
    swe->run.status = output->status;
    swe->run.has_begun = has_output(stage, "swe_began");
    int code = take(stage, "swe_witness", WITNESS_MAX, &swe->witness, fail);
    swe->run.witness = buffer_peek(&swe->witness);
    fiber_lift_deadline(stage_closing_by(stage)); /* the tests may have used up the stage's time, and be judged */
    if (code == 0)
        code = offload_run(judge_work, swe, fail);
    fiber_pop_deadline();
    if (code == 0)
        evaluator_end(swe->job, &swe->verdict);
    return code;
}

static int run_tests(struct swe_job *swe, struct stage_sandbox *stage, struct fail *fail)
{
    struct sandbox_output output = {0};
    struct buffer text = {0};
    char tests[PATH_MAX];
    in_run(stage, "tests.patch", tests);
    script_run(swe->swe, tests, &swe->tests, swe->run.has_witness ? sandbox_run_path(stage->sandbox) : NULL,
               swe->run.nonce, &text);
    AUTO_FREE char *script = buffer_take_str(&text);
    int code = script ? sandbox_command(stage->sandbox, script, stage_command_ms(swe->job->task->limits.eval_s),
                                        LOG_MAX, &output, fail)
                      : fail_memory(fail);
    if (code == 0 && sandbox_breach(stage->sandbox))
        end_breach(swe, stage);
    else if (code == 0)
        code = judge(swe, stage, &output, fail);
    free(output.text);
    return code;
}

static void evaluate(struct swe_job *swe, struct stage_sandbox *stage)
{
    struct fail fail = {0};
    int code = evaluator_sandbox_open_fresh(stage, swe->job, &fail);
    if (code == 0)
        code = install(swe, stage, &fail);
    if (code == 0)
        code = apply(swe, stage, &fail);
    if (code > 0)
        code = run_tests(swe, stage, &fail);
    if (code < 0)
        end_failed(swe, stage, code, &fail);
}

static void swe_run(struct job *job)
{
    struct stage_sandbox stage = {.part = STAGE_EVALUATORS};
    struct swe_job swe = {.job = job, .swe = &job->task->swe};
    if (evaluator_lacks_files(job))
        return;
    if (take_patch(&swe) && keep_patch(&swe)) {
        evaluate(&swe, &stage);
        stage_confirm(job, &stage);
    }
    stage_sandbox_close(&stage);
    finish(&swe);
}

const struct evaluator evaluator_swe = {.run = swe_run};
