#include "broker/net/gate.h"

#include <errno.h>

int gate_open(struct gate *gate, void *context, const char *dir, struct fail *fail)
{
    *gate = (struct gate){0};
    if (!dir)
        return 0;
    int code = trust_open(&gate->trust, dir, fail);
    if (code == 0)
        code = zap_start(&gate->zap, context, gate->trust, fail);
    if (code)
        gate_close(gate);
    return code;
}

void gate_close(struct gate *gate)
{
    zap_stop(&gate->zap);
    trust_close(&gate->trust);
}

int gate_arm(const struct gate *gate, void *socket, enum zap_domain domain)
{
    return gate->trust ? curve_serve(socket, trust_own_key(gate->trust), zap_domain_name(domain)) : 0;
}

bool gate_find_caller(const struct gate *gate, zmq_msg_t *frame, enum zap_domain domain,
                      struct caller *ret, char ret_name[KEY_NAME_SIZE])
{
    struct trusted who;
    ret_name[0] = '\0';
    ret->name = slice_of(ret_name, 0);
    ret->is_admin = true;
    if (!gate->trust)
        return true;
    ret->is_admin = false;
    const char *public_text = zmq_msg_gets(frame, "User-Id");
    if (!public_text || !trust_find(gate->trust, public_text, &who) || !zap_takes(domain, who.role))
        return false;
    memcpy(ret_name, who.name, sizeof(who.name));
    ret->name = slice_from_str(ret_name);
    ret->is_admin = who.role == ROLE_ADMIN;
    return true;
}
