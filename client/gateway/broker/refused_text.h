/* refused_text.h - a refusal of the broker's as texts that end in NUL, each as long as its message may have it. */
#ifndef SLUICE_CLIENT_GATEWAY_BROKER_REFUSED_TEXT_H
#define SLUICE_CLIENT_GATEWAY_BROKER_REFUSED_TEXT_H

#include "schemas/messages/message.h"
#include "schemas/messages/message_max.h"

struct refused_text {
    char reason[MESSAGE_MAX(refused, reason) + 1];
    char field[MESSAGE_MAX(refused, field) + 1]; /* "": none */
    char words[MESSAGE_MAX(refused, text) + 1];
};

struct refused_text refused_text(const struct msg_refused *refused);

#endif
