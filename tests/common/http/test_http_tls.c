/*
 * A server with TLS: certificates made here, wrong ones, and their renewal while it runs. Clients are OpenSSL's, in a
 * thread.
 */
#include "tests/common/http/http_world.h"

#include <microhttpd.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <sys/eventfd.h>

#define HOST "Host: h\r\n"

/* ---- certificates ------------------------------------------------------------------------------------------ */

struct pair {
    char certificate[4096], key[4096];
};

static void take_pem(BIO *bio, char *ret, size_t size)
{
    char *text;
    const long len = BIO_get_mem_data(bio, &text);
    assert_true(len > 0 && (size_t)len < size);
    memcpy(ret, text, (size_t)len);
    ret[len] = '\0';
    BIO_free(bio);
}

/* Signed by its own key. */
static void make_pair(const char *name, struct pair *ret)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_get_subject_name(certificate);
    BIO *text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_mem());
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(text, certificate), 1);
    assert_int_equal(PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL), 1);
    take_pem(text, ret->certificate, sizeof(ret->certificate));
    take_pem(key_text, ret->key, sizeof(ret->key));
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static struct pair first, second;

/* ---- a client ----------------------------------------------------------------------------------------------- */

struct tls_client {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
    char name[64]; /* whose certificate it was shown */
};

/* What a thread does while the loop runs. */
struct deed {
    void (*act)(struct tls_client *client, const char *text, char *ret, size_t size);
    struct tls_client *client;
    const char *text;
    char *ret;
    size_t size;
    int done_fd;
};

static void *act(void *arg)
{
    struct deed *deed = arg;
    deed->act(deed->client, deed->text, deed->ret, deed->size);
    eventfd_write(deed->done_fd, 1);
    return NULL;
}

static bool is_done;

static void on_done(void *arg, uint32_t events)
{
    (void)arg;
    (void)events;
    is_done = true;
}

static bool has_done(const void *arg)
{
    (void)arg;
    return is_done;
}

static void while_the_loop_runs(void (*deed_of)(struct tls_client *client, const char *text, char *ret, size_t size),
                                struct tls_client *client, const char *text, char *ret, size_t size)
{
    pthread_t thread;
    struct deed deed = {.act = deed_of, .client = client, .text = text, .ret = ret, .size = size};
    deed.done_fd = eventfd(0, EFD_CLOEXEC);
    is_done = false;
    struct loop_watch *watch = loop_watch(loop, deed.done_fd, EPOLLIN, on_done, NULL);
    assert_int_equal(pthread_create(&thread, NULL, act, &deed), 0);
    await("a client of TLS", has_done, NULL);
    pthread_join(thread, NULL);
    loop_unwatch(loop, &watch);
    close(deed.done_fd);
}

static void connect_now(struct tls_client *client, const char *text, char *ret, size_t size)
{
    (void)text;
    (void)ret;
    (void)size;
    SSL_set_fd(client->ssl, client->fd);
    if (SSL_connect(client->ssl) != 1)
        return;
    X509 *certificate = SSL_get1_peer_certificate(client->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, client->name, sizeof(client->name));
    X509_free(certificate);
}

/* Until the answer is whole, or there is no more. */
static void ask_now(struct tls_client *client, const char *text, char *ret, size_t size)
{
    size_t len = 0;
    int n;
    SSL_write(client->ssl, text, (int)strlen(text));
    ret[0] = '\0';
    while (len < size - 1 && !strstr(ret, "fine") &&
           (n = SSL_read(client->ssl, ret + len, (int)(size - 1 - len))) > 0) {
        len += (size_t)n;
        ret[len] = '\0';
    }
}

static void tls_open(struct tls_client *client)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = (struct tls_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    client->context = SSL_CTX_new(TLS_client_method());
    client->ssl = SSL_new(client->context);
    while_the_loop_runs(connect_now, client, NULL, NULL, 0);
}

static void tls_close(struct tls_client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
}

static void check_fine(struct tls_client *client)
{
    static char answer[4096];
    while_the_loop_runs(ask_now, client, "GET / HTTP/1.1\r\n" HOST "\r\n", answer, sizeof(answer));
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "fine"));
}

/* ---- the tests ------------------------------------------------------------------------------------------------ */

static int open_tls(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    struct pair copy = first;
    plan.certificate = copy.certificate;
    plan.key = copy.key;
    open_server(&plan);
    memset(&copy, 0, sizeof(copy)); /* the server has its own */
    return 0;
}

static void requests_over_tls_are_answered(void **state)
{
    (void)state;
    static char answer[300000];
    struct tls_client client;
    tls_open(&client);
    assert_string_equal(client.name, "first");
    check_fine(&client);
    check_fine(&client);
    while_the_loop_runs(ask_now, &client, "GET /large?size=200000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                        answer, sizeof(answer));
    assert_int_equal(status_of(answer), 200);
    assert_int_equal(strlen(strstr(answer, "\r\n\r\n") + 4), 200000);
    tls_close(&client);
}

static void who_hangs_up_over_tls_while_it_waits_is_gone(void **state)
{
    (void)state;
    struct tls_client client;
    tls_open(&client);
    static const char request[] = "GET /wait HTTP/1.1\r\n" HOST "\r\n";
    assert_int_equal(SSL_write(client.ssl, request, sizeof(request) - 1), sizeof(request) - 1);
    await_count("it waits", &owner.waiting_count, 1);
    tls_close(&client);
    await_count("it is gone", &owner.gone, 1);
    assert_int_equal(owner.whole, 0);
}

static void what_speaks_no_tls_is_closed(void **state)
{
    (void)state;
    AUTO_FREE char *answer = ask_bytes(slice_from_str("GET / HTTP/1.1\r\n" HOST "\r\n"));
    assert_int_equal(status_of(answer), 0);
    struct tls_client client;
    tls_open(&client);
    check_fine(&client);
    tls_close(&client);
}

static void a_renewed_certificate_is_shown_to_new_clients(void **state)
{
    (void)state;
    struct tls_client before, after, last;
    struct fail fail = {0};
    tls_open(&before);
    check_fine(&before);
    assert_int_equal(http_server_renew_tls(server, second.certificate, second.key, &fail), 0);
    tls_open(&after);
    assert_string_equal(after.name, "second");
    check_fine(&after);
    check_fine(&before);
    tls_close(&before);
    for (int i = 0; i < 8; i++)
        assert_int_equal(http_server_renew_tls(server, first.certificate, first.key, &fail), 0);
    tls_open(&last);
    assert_string_equal(last.name, "first");
    check_fine(&last);
    check_fine(&after);
    assert_int_equal(http_server_connections(server), 2);
    assert_int_equal(http_server_renew_tls(server, first.certificate, first.key, &fail), 0);
    assert_int_equal(http_server_connections(server), 1);
    check_fine(&last);
    tls_close(&after);
    tls_close(&last);
}

static void a_wrong_certificate_changes_nothing(void **state)
{
    (void)state;
    struct tls_client client;
    struct fail fail = {0};
    assert_int_equal(http_server_renew_tls(server, second.certificate, first.key, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "TLS: "));
    assert_true(strlen(fail.text) > 20);
    assert_int_equal(http_server_renew_tls(server, "none", second.key, NULL), -EINVAL);
    assert_int_equal(http_server_renew_tls(server, second.certificate, "", NULL), -EINVAL);
    tls_open(&client);
    assert_string_equal(client.name, "first");
    check_fine(&client);
    tls_close(&client);
}

static void a_server_with_a_wrong_certificate_does_not_open(void **state)
{
    (void)state;
    struct fail fail = {0};
    struct http_server_plan plan = usual_plan();
    struct loop *own = loop_create();
    plan.certificate = first.certificate;
    plan.key = second.key;
    assert_null(http_server_open(own, &plan, &fail));
    assert_int_equal(fail.code, -EINVAL);
    loop_destroy(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_over_tls_are_answered, open_tls, close_server),
        cmocka_unit_test_setup_teardown(who_hangs_up_over_tls_while_it_waits_is_gone, open_tls, close_server),
        cmocka_unit_test_setup_teardown(what_speaks_no_tls_is_closed, open_tls, close_server),
        cmocka_unit_test_setup_teardown(a_renewed_certificate_is_shown_to_new_clients, open_tls, close_server),
        cmocka_unit_test_setup_teardown(a_wrong_certificate_changes_nothing, open_tls, close_server),
        cmocka_unit_test(a_server_with_a_wrong_certificate_does_not_open),
    };
    if (MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return 77;
    make_pair("first", &first);
    make_pair("second", &second);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
