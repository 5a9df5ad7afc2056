#include "common/digest/digest.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/*
 * sha256 as libcrypto has it, looked up once: since its version 3 each use of EVP_sha256() is a look-up, which takes
 * longer than the digest of a name.
 */
static const EVP_MD *sha256;
static pthread_once_t sha256_is_found = PTHREAD_ONCE_INIT;

static void find_sha256(void)
{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
#endif
    if (!sha256)
        sha256 = EVP_sha256();
}

static const EVP_MD *get_sha256(void)
{
    pthread_once(&sha256_is_found, find_sha256);
    return sha256;
}

static bool finish(EVP_MD_CTX *context, char ret[DIGEST_SIZE])
{
    unsigned char raw[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (EVP_DigestFinal_ex(context, raw, &len) != 1)
        return false;
    size_t at = (size_t)snprintf(ret, DIGEST_SIZE, "sha256:");
    for (unsigned i = 0; i < len; i++)
        at += (size_t)snprintf(ret + at, DIGEST_SIZE - at, "%02x", raw[i]);
    return true;
}

struct digest {
    EVP_MD_CTX *context;
    bool failed;
};

struct digest *digest_begin(void)
{
    struct digest *digest = calloc(1, sizeof(*digest));
    if (digest && !(digest->context = EVP_MD_CTX_new()))
        digest_drop(&digest);
    if (digest)
        digest->failed = EVP_DigestInit_ex(digest->context, get_sha256(), NULL) != 1;
    return digest;
}

void digest_add(struct digest *digest, struct slice piece)
{
    if (!digest->failed)
        digest->failed = EVP_DigestUpdate(digest->context, piece.data, piece.len) != 1;
}

void digest_add_text(struct digest *digest, const char *text)
{
    text = text ? text : "";
    digest_add(digest, slice_of(text, strlen(text) + 1));
}

void digest_add_number(struct digest *digest, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    digest_add_text(digest, text);
}

void digest_add_texts(struct digest *digest, char *const *texts, size_t count)
{
    digest_add_number(digest, count);
    for (size_t i = 0; i < count; i++)
        digest_add_text(digest, texts[i]);
}

bool digest_end(struct digest **digest, char ret[DIGEST_SIZE])
{
    bool good = *digest && !(*digest)->failed && finish((*digest)->context, ret);
    digest_drop(digest);
    return good;
}

void digest_drop(struct digest **digest)
{
    if (!*digest)
        return;
    EVP_MD_CTX_free((*digest)->context);
    free(take_ptr(digest));
}

bool digest_raw(struct slice bytes, uint8_t ret[DIGEST_RAW_SIZE])
{
    return EVP_Digest(bytes.data, bytes.len, ret, NULL, get_sha256(), NULL) == 1;
}

bool digest_of(struct slice bytes, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    if (digest)
        digest_add(digest, bytes);
    return digest_end(&digest, ret);
}

bool digest_of_file(int fd, char ret[DIGEST_SIZE])
{
    struct digest *digest = digest_begin();
    char chunk[65536];
    ssize_t got = -1;
    while (digest && (got = read(fd, chunk, sizeof(chunk))) > 0)
        digest_add(digest, slice_of(chunk, (size_t)got));
    return digest_end(&digest, ret) && got == 0;
}

bool digest_is_valid(const char *digest)
{
    if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 7 + 64)
        return false;
    return strspn(digest + 7, "0123456789abcdef") == 64;
}
