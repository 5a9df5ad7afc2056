#include "broker/net/auth.h"

#include <errno.h>

int auth_open(struct auth *auth, void *context, const char *dir, struct fail *fail)
{
    *auth = (struct auth){0};
    if (!dir)
        return 0;
    int code = certs_open(&auth->certs, dir, fail);
    if (code == 0)
        code = zap_start(&auth->zap, context, auth->certs, fail);
    if (code)
        auth_close(auth);
    return code;
}

void auth_close(struct auth *auth)
{
    zap_stop(&auth->zap);
    certs_close(&auth->certs);
}

int auth_arm(const struct auth *auth, void *socket, enum zap_domain domain)
{
    return auth->certs ? curve_serve(socket, certs_own_key(auth->certs), zap_domain_name(domain)) : 0;
}

bool auth_find_caller(const struct auth *auth, zmq_msg_t *frame, enum zap_domain domain, struct caller *ret,
                      char ret_name[KEY_NAME_SIZE])
{
    struct cert who;
    ret_name[0] = '\0';
    ret->name = slice_of(ret_name, 0);
    ret->is_admin = true;
    if (!auth->certs)
        return true;
    ret->is_admin = false;
    const char *public_text = zmq_msg_gets(frame, "User-Id");
    if (!public_text || !certs_find(auth->certs, public_text, &who) || !zap_takes(domain, who.role))
        return false;
    memcpy(ret_name, who.name, sizeof(who.name));
    ret->name = slice_from_str(ret_name);
    ret->is_admin = who.role == ROLE_ADMIN;
    return true;
}
