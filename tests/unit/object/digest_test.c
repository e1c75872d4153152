/* Digests: published check values, any split of the bytes, joining CRCs of parts. */
#include "object/crc.h"
#include "object/digest.h"
#include "os/thread.h"
#include "unit/test.h"

#include <stdlib.h>

static struct str hex(enum digest_kind kind, struct str bytes, struct buf *out)
{
    struct digest_value value;

    digest_of(kind, bytes, &value);
    CHECK_INT(value.len, digest_size(kind));
    buf_reset(out);
    buf_append_hex(out, value.bytes, value.len);
    return buf_str(out);
}

static void fill(struct buf *b, size_t len, unsigned seed)
{
    buf_reset(b);
    for (size_t i = 0; i < len; i++)
        buf_append_char(b, (char)rand_r(&seed));
}

TEST(digest, published_check_values_come_out)
{
    struct buf b = BUF_INIT(0);
    struct str check = STR("123456789");

    CHECK_STR(hex(DIGEST_CRC32, check, &b), STR("cbf43926"));
    CHECK_STR(hex(DIGEST_CRC32C, check, &b), STR("e3069283"));
    CHECK_STR(hex(DIGEST_CRC64NVME, check, &b), STR("ae8b14860a799888"));
    CHECK_STR(hex(DIGEST_MD5, STR("abc"), &b), STR("900150983cd24fb0d6963f7d28e17f72"));
    CHECK_STR(hex(DIGEST_SHA1, STR("abc"), &b), STR("a9993e364706816aba3e25717850c26c9cd0d89d"));
    CHECK_STR(hex(DIGEST_SHA256, STR("abc"), &b),
              STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK_STR(hex(DIGEST_CRC32, STR_EMPTY, &b), STR("00000000"));
    CHECK_STR(hex(DIGEST_CRC32C, STR_EMPTY, &b), STR("00000000"));
    CHECK_STR(hex(DIGEST_CRC64NVME, STR_EMPTY, &b), STR("0000000000000000"));
    CHECK_STR(hex(DIGEST_MD5, STR_EMPTY, &b), STR("d41d8cd98f00b204e9800998ecf8427e"));
    buf_release(&b);
}

TEST(digest, any_split_of_the_bytes_gives_the_same_values)
{
    struct buf bytes = BUF_INIT(0);
    unsigned seed = 7, all = (1u << DIGEST_KINDS) - 1;

    for (int round = 0; round < 30; round++) {
        fill(&bytes, (size_t)rand_r(&seed) % 70000, (unsigned)round);
        struct digests *d = digests_new(all);
        for (struct str rest = buf_str(&bytes); rest.len;) {
            size_t n = (size_t)rand_r(&seed) % 20000;
            digests_update(d, str_head(rest, n));
            rest = str_skip(rest, n);
        }
        for (int kind = 0; kind < DIGEST_KINDS; kind++) {
            struct digest_value got, want;
            digests_final(d, (enum digest_kind)kind, &got);
            digest_of((enum digest_kind)kind, buf_str(&bytes), &want);
            CHECK_STR(str_n(got.bytes, got.len), str_n(want.bytes, want.len));
        }
        digests_free(d);
    }
    buf_release(&bytes);
}

TEST(digest, the_multiplied_crc64_is_the_tables_at_every_length)
{
    struct buf bytes = BUF_INIT(0);

    fill(&bytes, 1100, 3);
    for (size_t len = 0; len <= 1024; len++) {
        struct str part = str_n(bytes.p + len % 17, len);
        CHECK(crc64_nvme(len, part) == crc64_nvme_table(len, part));
    }
    buf_release(&bytes);
}

TEST(digest, crcs_of_parts_combine_to_the_crc_of_the_whole)
{
    static const enum digest_kind crcs[] = {DIGEST_CRC32, DIGEST_CRC32C, DIGEST_CRC64NVME};
    struct buf bytes = BUF_INIT(0);
    unsigned seed = 11;

    for (int round = 0; round < 60; round++) {
        fill(&bytes, (size_t)rand_r(&seed) % 5000, (unsigned)round);
        size_t cut = bytes.len ? (size_t)rand_r(&seed) % (bytes.len + 1) : 0;
        for (size_t i = 0; i < ARRAY_SIZE(crcs); i++) {
            struct digest_value left, right, whole;
            digest_of(crcs[i], str_head(buf_str(&bytes), cut), &left);
            digest_of(crcs[i], str_skip(buf_str(&bytes), cut), &right);
            digest_of(crcs[i], buf_str(&bytes), &whole);
            digest_combine(crcs[i], &left, &right, bytes.len - cut);
            CHECK_STR(str_n(left.bytes, left.len), str_n(whole.bytes, whole.len));
        }
    }
    buf_release(&bytes);
}

TEST(digest, parts_far_larger_than_memory_combine)
{
    /* A run of zeros doubled 50 times by combining it with itself is one run of 2^50. */
    struct digest_value zeros, sum, skipped;
    char zero = 0;

    digest_of(DIGEST_CRC64NVME, str_n(&zero, 1), &zeros);
    for (unsigned i = 0; i < 50; i++) {
        struct digest_value again = zeros;
        digest_combine(DIGEST_CRC64NVME, &zeros, &again, UINT64_C(1) << i);
    }
    digest_of(DIGEST_CRC64NVME, str_n(&zero, 1), &sum);
    skipped = sum;
    digest_combine(DIGEST_CRC64NVME, &sum, &zeros, UINT64_C(1) << 50);
    digest_combine(DIGEST_CRC64NVME, &zeros, &skipped, 1);
    CHECK_STR(str_n(sum.bytes, sum.len), str_n(zeros.bytes, zeros.len));
}

TEST(digest, nothing_wanted_computes_nothing)
{
    struct digests *d = digests_new(0);

    digests_update(d, STR("bytes"));
    digests_free(d);
    digests_free(NULL);
}

TEST(digest, a_reused_set_starts_afresh)
{
    struct digest_value first, second;
    struct digests *d = digests_new(1u << DIGEST_MD5);

    digests_update(d, STR("left in the middle"));
    digests_free(d);
    digest_of(DIGEST_MD5, STR("x"), &first);
    d = digests_new(1u << DIGEST_MD5 | 1u << DIGEST_SHA256);
    digests_update(d, STR("x"));
    digests_final(d, DIGEST_MD5, &second);
    digests_free(d);
    CHECK_STR(str_n(first.bytes, 16), str_n(second.bytes, 16));
}

static void hash_often(void *ctx)
{
    struct buf b = BUF_INIT(0);

    for (int i = 0; i < 200; i++)
        CHECK_STR(hex(DIGEST_CRC64NVME, STR("123456789"), &b), STR("ae8b14860a799888"));
    buf_release(&b);
}

TEST(digest, threads_hash_at_the_same_time)
{
    struct thread threads[4] = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_OK(thread_start(&threads[i], "hash", 0, hash_often, NULL, &err));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i]);
}
