#include "common/cmdline/portable.h"

#ifdef SLUICE_PORTABLE

#include <nss.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * A libc that is linked statically may load no modules of another: nsswitch.conf could name some. These two are built
 * in: /etc/hosts and DNS. It takes the databases' sources as a char *, and does not write to them.
 */
static void look_up_without_modules(void)
{
    static char files[] = "files", hosts[] = "files dns";
    __nss_configure_lookup("hosts", hosts);
    __nss_configure_lookup("networks", files);
    __nss_configure_lookup("services", files);
    __nss_configure_lookup("protocols", files);
    __nss_configure_lookup("passwd", files);
    __nss_configure_lookup("group", files);
}

/* OpenSSL, which libcurl asks, has Debian's path inside. */
static void find_authorities(void)
{
    static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Red Hat, Rocky, Fedora */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem",
    };
    for (size_t i = 0; i < sizeof(bundles) / sizeof(*bundles) && !getenv("SSL_CERT_FILE"); i++)
        if (access(bundles[i], R_OK) == 0)
            setenv("SSL_CERT_FILE", bundles[i], 1);
}

void portable_begin(void)
{
    look_up_without_modules();
    find_authorities();
}

#else

void portable_begin(void) {}

#endif
