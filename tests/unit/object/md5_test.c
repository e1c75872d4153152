/* MD5 against OpenSSL's: every length around the blocks, every kernel, every number of lanes; and
 * the thread that hashes for many. */
#include "object/hasher.h"
#include "unit/test.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 4 * 1024, BODIES = 24, THREADS = 6 };

static uint64_t next(uint64_t *random, uint64_t bound)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % bound;
}

static void fill(char *p, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (char)next(&seed, 256);
}

static void check_md5(const unsigned char got[MD5_LEN], struct str bytes)
{
    unsigned char want[MD5_LEN];

    CHECK(EVP_Digest(bytes.p ? bytes.p : "", bytes.len, want, NULL, EVP_md5(), NULL));
    CHECK_STR(str_n(got, MD5_LEN), str_n(want, MD5_LEN));
}

/* In pieces of every size around a block. */
static void every_length(enum md5_kernels kernels)
{
    static char bytes[LONGEST];
    unsigned char sum[MD5_LEN];
    struct md5 md5;

    md5_limit_kernels(kernels);
    fill(bytes, sizeof(bytes), 7);
    for (size_t len = 0; len <= 300; len++)
        for (size_t piece = 1; piece <= 130; piece += len % 7 + 1) {
            md5_init(&md5);
            for (size_t at = 0; at < len; at += piece)
                md5_update(&md5, str_n(bytes + at, size_min(piece, len - at)));
            md5_final(&md5, sum);
            check_md5(sum, str_n(bytes, len));
        }
    md5_init(&md5);
    md5_update(&md5, str_n(bytes, sizeof(bytes)));
    md5_final(&md5, sum);
    check_md5(sum, str_n(bytes, sizeof(bytes)));
}

TEST(md5, every_length_by_every_kernel)
{
    enum md5_kernels best = md5_limit_kernels(MD5_AVX512);

    for (int kernels = (int)best; kernels >= MD5_SCALAR; kernels--)
        every_length((enum md5_kernels)kernels);
}

/* Bodies of random lengths in random company, until all are done. */
static void side_by_side(size_t most, uint64_t seed)
{
    static char bytes[MD5_LANES][LONGEST];
    struct md5 md5[MD5_LANES];
    size_t len[MD5_LANES], at[MD5_LANES] = {0}, left = MD5_LANES;
    unsigned char sum[MD5_LEN];

    for (size_t i = 0; i < MD5_LANES; i++) {
        len[i] = next(&seed, LONGEST);
        fill(bytes[i], len[i], seed);
        md5_init(&md5[i]);
    }
    while (left) {
        struct md5_lane lanes[MD5_LANES];
        size_t who[MD5_LANES], count = 0;
        left = 0;
        for (size_t i = 0; i < MD5_LANES; i++) {
            size_t blocks = (len[i] - at[i]) / MD5_BLOCK;
            left += blocks > 0;
            if (!blocks || count == most || next(&seed, 3) == 0)
                continue;
            who[count] = i;
            lanes[count++] = (struct md5_lane){&md5[i], bytes[i] + at[i], 1 + next(&seed, blocks)};
        }
        size_t blocks = count ? md5_side_by_side(lanes, count) : 0;
        CHECK(!count || blocks > 0);
        for (size_t i = 0; i < count; i++)
            at[who[i]] += blocks * MD5_BLOCK;
    }
    for (size_t i = 0; i < MD5_LANES; i++) {
        md5_update(&md5[i], str_n(bytes[i] + at[i], len[i] - at[i]));
        md5_final(&md5[i], sum);
        check_md5(sum, str_n(bytes[i], len[i]));
    }
}

TEST(md5, bodies_side_by_side_do_not_mix)
{
    enum md5_kernels best = md5_limit_kernels(MD5_AVX512);

    for (int kernels = (int)best; kernels >= MD5_SCALAR; kernels--) {
        md5_limit_kernels((enum md5_kernels)kernels);
        for (size_t most = 1; most <= MD5_LANES; most++)
            side_by_side(most, most * 31 + (uint64_t)kernels);
    }
}

/* --- the thread --- */

struct body_thread {
    struct thread thread;
    struct hasher *hasher;
    uint64_t random;
    int wrong;
};

/* As an upload does it: buffers that go around, written to again as soon as H2 allows. */
static bool hash_one(struct body_thread *t, struct buf *all)
{
    static const size_t sizes[] = {1, 63, 64, 65, 4096, 70001, 128 * 1024};
    char *buffers[HASH_PIECES + 1];
    size_t pieces = next(&t->random, 9), size = sizes[next(&t->random, ARRAY_SIZE(sizes))];
    unsigned char sum[MD5_LEN], want[MD5_LEN];
    struct hash_stream s;

    for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
        buffers[i] = malloc(size);
    buf_reset(all);
    hash_begin(&s, t->hasher);
    for (size_t i = 0; i < pieces; i++) {
        char *to = buffers[i % ARRAY_SIZE(buffers)];
        size_t len = i + 1 < pieces ? size : 1 + next(&t->random, size);
        fill(to, len, t->random);
        buf_append(all, to, len);
        hash_add(&s, str_n(to, len));
    }
    hash_end(&s, sum);
    for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
        free(buffers[i]);
    return EVP_Digest(all->len ? all->p : "", all->len, want, NULL, EVP_md5(), NULL) &&
           memcmp(sum, want, sizeof(sum)) == 0;
}

static void hash_many(void *ctx)
{
    struct body_thread *t = ctx;
    struct buf all = BUF_INIT(0);

    for (int i = 0; i < BODIES; i++)
        t->wrong += !hash_one(t, &all);
    buf_release(&all);
}

TEST(hasher, bodies_of_many_threads_get_their_own_sums)
{
    struct body_thread threads[THREADS] = {0};
    struct hasher *hasher;
    struct err err = {0};

    CHECK_OK(hasher_start(&hasher, &err));
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = (struct body_thread){.hasher = hasher, .random = i + 1};
        CHECK_OK(thread_start(&threads[i].thread, "body", 0, hash_many, &threads[i], &err));
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(&threads[i].thread);
        CHECK_INT(threads[i].wrong, 0);
    }
    hasher_stop(hasher);
}

TEST(hasher, a_body_without_bytes_has_a_sum_too)
{
    struct hasher *hasher;
    struct hash_stream s;
    unsigned char sum[MD5_LEN];
    struct err err = {0};

    CHECK_OK(hasher_start(&hasher, &err));
    hash_begin(&s, hasher);
    hash_add(&s, STR_EMPTY);
    hash_end(&s, sum);
    check_md5(sum, STR_EMPTY);
    hasher_stop(hasher);
}
