#include "client/gateway/door/access_log.h"

#include "common/base/clock.h"
#include "common/base/log.h"

/* The path without its query, which may hold what is nobody else's business. */
void access_log_note(struct gateway *gateway, const struct exchange *exchange, const struct http_call *call,
                     bool is_whole)
{
    char peer[EXCHANGE_ADDRESS_SIZE];
    if (!gateway->settings->access_log)
        return;
    exchange_peer_address(exchange, peer);
    log_event(LOG_INFO, "http.request", "method=%s path=\"%s\" status=%d bytes=%llu ms=%lld peer=%s client=\"%s\"%s",
              exchange_method(exchange), exchange_path(exchange), exchange_status(exchange),
              (unsigned long long)exchange_sent(exchange), call ? (long long)(clock_us() - call->began_us) / 1000 : 0LL,
              peer, call && call->identity ? call->identity->name : "", is_whole ? "" : " cut=1");
}
