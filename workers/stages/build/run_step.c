#include "workers/stages/build/run_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"

#define SCRIPT "/tmp/.sluice-run"
enum { OUTPUT_MAX = 16384, TAIL_MAX = 1200 };

static int64_t time_left(const struct build *build)
{
    const int64_t left_ms = build->until_ms - loop_now_ms();
    const int64_t stage_ms = stage_command_ms(build->of.build->timeout_s);
    return left_ms < 1 ? 1 : left_ms < stage_ms ? left_ms : stage_ms;
}

static int judge(struct build *build, const struct stage_step *step, struct stage_sandbox *room,
                 const struct sandbox_output *output)
{
    char how[160];
    if (sandbox_breach(room->sandbox))
        return build_refuse(build, step, "RUN went over its %s limit", sandbox_breach(room->sandbox));
    if (output->status == 0 && !output->timed_out)
        return 0;
    stage_describe_end(room, output, how, sizeof(how));
    const char *tail = stage_output_tail(output, TAIL_MAX);
    return build_refuse(build, step, "RUN %s%s%s%s", how, output->timed_out ? " (build.timeout_s)" : "",
                        *tail ? ": " : "", tail);
}

int run_step_run(struct build *build, const struct stage_step *step, struct stage_sandbox *room)
{
    AUTO_BUFFER command = {0};
    struct sandbox_output output = {0};
    int code = 0;
    if (step->script)
        code = sandbox_write_file(room->sandbox, SCRIPT, step->script, strlen(step->script), 0755, &build->fail);
    buffer_append_str(&command, step->script ? "exec " SCRIPT : "exec");
    for (size_t i = 0; i < step->argv_count; i++) {
        buffer_append_str(&command, " ");
        buffer_append_quoted(&command, step->argv[i]);
    }
    AUTO_FREE char *text = buffer_take_str(&command);
    if (!text)
        return fail_memory(&build->fail);
    if (code == 0)
        code = sandbox_command(room->sandbox, text, time_left(build), OUTPUT_MAX, &output, &build->fail);
    if (code == 0 || sandbox_breach(room->sandbox))
        code = judge(build, step, room, &output);
    else if (code == -ENOEXEC)
        code = build_refuse(build, step, "RUN needs a /bin/bash that starts, and the image has none");
    if (code == 0 && step->script)
        code = sandbox_remove(room->sandbox, SCRIPT, &build->fail);
    free(output.text);
    return code;
}

void run_step_add(struct build *build, const struct stage_step *step, struct digest *digest)
{
    const struct image_config *environment = &step->environment;
    digest_add_text(digest, environment->user);
    digest_add_text(digest, environment->workdir);
    digest_add_text(digest, step->script);
    digest_add_texts(digest, step->argv, step->argv_count);
    digest_add_texts(digest, environment->variables, environment->variable_count);
    digest_add_texts(digest, (char *const *)build->of.build->grants.each, build->of.build->grants.count);
}
