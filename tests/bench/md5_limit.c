/* What MD5 allows one body: OpenSSL's, one core, a block in the cache again and again.
 *
 *     bench_md5_limit SECONDS */
#include "load.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 256 * 1024 };

/* Of this thread: another job on the machine is not MD5's fault. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    static unsigned char piece[PIECE], sum[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    uint64_t bytes = 0;

    if (argc != 2 || !md5 || !EVP_DigestInit_ex(md5, EVP_md5(), NULL))
        return 2;
    memset(piece, 'x', sizeof(piece));
    double began = cpu_seconds(), end = began + atof(argv[1]), now = began;
    while (now < end) {
        for (int i = 0; i < 16; i++, bytes += PIECE)
            EVP_DigestUpdate(md5, piece, PIECE);
        now = cpu_seconds();
    }
    EVP_DigestFinal_ex(md5, sum, NULL);
    EVP_MD_CTX_free(md5);
    printf("ops 1\nbytes %llu\nseconds %.6f\n", (unsigned long long)bytes, now - began);
    return 0;
}
