/*
 * Any bytes: they are refused with a reason, or are a task that keeps what task.h says of it; and
 * what is read without jansson is what jansson reads.
 */
#include "common/base/cleanup.h"
#include "schemas/task/json/task_table.h"
#include "tests/fuzz.h"
#include "tests/schemas/task/task_json_made.h"

static const char seed_task[] =
    "{\"task\":\"t\",\"kind\":\"sandbox\",\"messages\":[{\"role\":\"user\",\"content\":\"c\"}],"
    "\"files\":[{\"path\":\"a/b\",\"base64\":\"AP8Q\",\"mode\":\"0755\"}],\"setup\":[\"ls\"],"
    "\"image\":\"/i\",\"agent\":{\"kind\":\"bash\",\"tools\":[\"bash\"],\"max_turns\":3},"
    "\"sampling\":{\"temperature\":0.5,\"seed\":-1},\"eval\":{\"kind\":\"command\",\"command\":"
    "\"c\","
    "\"reward_file\":\"r\",\"files\":{\"e\":\"x\"}},\"limits\":{\"run_s\":9},\"samples\":2,"
    "\"metadata\":{}}";

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (seed % 16 == 0 && max_size > sizeof(seed_task)) {
        size = sizeof(seed_task) - 1;
        memcpy(data, seed_task, size);
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

static void check_files(const struct task_file *files, size_t count)
{
    must(count <= TASK_FILES_MAX);
    for (size_t i = 0; i < count; i++)
        must(files[i].path[0] && files[i].content && files[i].mode <= 0777 && !strstr(files[i].path, "/../") &&
             strncmp(files[i].path, "../", 3) != 0);
}

static void check_task(const struct task *task)
{
    must(name_is_valid(slice_from_str(task->id)));
    must(task->kind && task->image && task->agent_kind && task->eval_kind);
    must(task->message_count > 0 || !task_needs_engine(task));
    must(task->message_count <= TASK_MESSAGES_MAX && task->setup_count <= TASK_SETUP_MAX);
    must(task->tool_count > 0 || strcmp(task->agent_kind, "bash") != 0);
    must((task->script_count > 0) == (strcmp(task->agent_kind, "replay") == 0));
    for (size_t i = 0; i < task->script_count; i++)
        must(task->script[i].tool[0] && task->script[i].arguments[0] == '{');
    must((task->eval_command != NULL) == (strcmp(task->eval_kind, "command") == 0));
    must((task->eval_answer != NULL) == (strcmp(task->eval_kind, "math") == 0));
    must(task->samples >= 1 && task->max_turns >= 1 && task->limits.run_s >= 1);
    for (size_t i = 0; i < task->setup_count; i++)
        must(task->setup[i][0]);
    check_files(task->files, task->file_count);
    check_files(task->eval_files, task->eval_file_count);
}

static void check_json(struct slice text)
{
    json_t *ours = json_made(text);
    if (ours) {
        json_t *theirs = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        must(json_equal(ours, theirs));
        json_decref(theirs);
    }
    json_decref(ours);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_json(slice_of(data, size));
    struct refusal no = {0};
    struct task *task = task_parse(slice_of(data, size), &no);
    if (task)
        check_task(task);
    else
        must(no.reason != REFUSAL_NONE && no.text[0]);
    task_destroy(task);
    return 0;
}
