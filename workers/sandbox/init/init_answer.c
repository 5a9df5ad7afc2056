#include "workers/sandbox/init/init_answer.h"

#include <errno.h>

#include "workers/sandbox/init/init_ends.h"

void init_tell(struct init *init, const struct wire_head *head, const char *text, const int *fds, size_t fd_count)
{
    if (init->control >= 0 && wire_send(init->control, head, slice_from_str(text), fds, fd_count) == -EPIPE)
        init_end(init);
}

void init_answer(struct init *init, int64_t result, const int *fds, size_t fd_count)
{
    struct wire_head head = {WIRE_DONE, init->message.head.id, {0, result}};
    init_tell(init, &head, "", fds, fd_count);
}

void init_refuse(struct init *init, const struct fail *fail)
{
    struct wire_head head = {WIRE_DONE, init->message.head.id, {fail->code}};
    init_tell(init, &head, fail->text, NULL, 0);
}
