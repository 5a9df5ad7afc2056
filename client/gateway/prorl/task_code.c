#include "client/gateway/prorl/task_code.h"

#include "client/gateway/bodies/program_tests.h"

enum { EVAL_S = 120, TEST_S = 7, MORE_S = 5 };

bool task_code_judge(const json_t *truth, json_t *task, char why[WHY_SIZE])
{
    struct fail fail = {0};
    size_t count = 0;
    json_t *tests = program_tests(truth, "reward_model.ground_truth", &count, &fail);
    if (!tests)
        return why_not(why, "%s", fail.text);
    const size_t seconds = TEST_S * count + MORE_S;
    json_object_set_new(task, "eval", json_pack("{s:s,s:o}", "kind", "code", "tests", tests));
    json_object_set_new(json_object_get(task, "limits"), "eval_s",
                        json_integer((json_int_t)(seconds > EVAL_S ? seconds : EVAL_S)));
    return true;
}
