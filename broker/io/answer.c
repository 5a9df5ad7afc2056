/* A message to a client, by way of promises.c. */
#include "broker/io/inner.h"

#include <errno.h>

int io_send_made(struct io *io, struct slice client, struct fail *fail)
{
    zmq_msg_t body;
    if (!zmq_frame_init(&body, &io->out, &io->held.front))
        return fail_set(fail, -ENOMEM, "out of memory");
    return promise_send(io, PROMISE_CLIENT, client, &body, fail);
}

int io_answer(struct io *io, struct slice client, enum message_id id, const void *message, struct fail *fail)
{
    struct refusal no;
    buffer_clear(&io->out);
    if (!message_encode(id, message, &io->out, &no))
        return fail_set(fail, -ENOMEM, "%s", no.text);
    return io_send_made(io, client, fail);
}
