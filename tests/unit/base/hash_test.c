/* hash and ids. */
#include "base/hash.h"
#include "base/ids.h"
#include "base/map.h"
#include "unit/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

TEST(hash, siphash_gives_the_vectors_of_its_authors)
{
    /* Input 00 01 02 ..., key 00 to 0f. The last is the example of the paper, appendix A. */
    static const struct {
        size_t len;
        uint64_t want;
    } vectors[] = {
        {0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd}, {2, 0x0d6c8009d9a94f5a},
        {3, 0x85676696d7fb7e2d},  {4, 0xcf2794e0277187b7}, {5, 0x18765564cd99a68d},
        {6, 0xcbc9466e58fee3ce},  {7, 0xab0200f58b01d137}, {8, 0x93f5f5799a932462},
        {15, 0xa129ca6149be45e5},
    };
    struct hash_key key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    char in[16];

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (char)i;
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
        CHECK(hash_sip(&key, str_n(in, vectors[i].len)) == vectors[i].want);
}

TEST(hash, xxh3_is_the_librarys)
{
    static char in[2000];

    random_bytes(in, sizeof(in));
    for (size_t len = 0; len <= sizeof(in); len += len < 300 ? 1 : 97)
        for (uint64_t seed = 0; seed < 3; seed++)
            CHECK(hash_xxh3(str_n(in, len), seed) == XXH3_64bits_withSeed(in, len, seed));
}

TEST(hash, tables_get_keys_of_their_own)
{
    struct hash_key a, b;
    hash_key_random(&a);
    hash_key_random(&b);
    CHECK(memcmp(&a, &b, sizeof(a)) != 0);
}

enum { IDS = 20000, THREADS = 4 };

struct made {
    char ids[IDS][ID_TIME_LEN + 1];
};

static void *make_ids(void *ctx)
{
    struct made *made = ctx;
    for (size_t i = 0; i < IDS; i++)
        id_time(made->ids[i]);
    return NULL;
}

TEST(ids, time_ids_of_all_threads_are_unique_and_each_thread_sees_them_rise)
{
    struct made *made = xcalloc(THREADS, sizeof(*made));
    pthread_t threads[THREADS];
    struct map seen;

    map_init(&seen);
    for (size_t t = 0; t < THREADS; t++)
        CHECK_INT(pthread_create(&threads[t], NULL, make_ids, &made[t]), 0);
    for (size_t t = 0; t < THREADS; t++)
        CHECK_INT(pthread_join(threads[t], NULL), 0);
    for (size_t t = 0; t < THREADS; t++)
        for (size_t i = 0; i < IDS; i++) {
            CHECK_INT(strlen(made[t].ids[i]), ID_TIME_LEN);
            CHECK(i == 0 || strcmp(made[t].ids[i - 1], made[t].ids[i]) < 0);
            CHECK(!map_put(&seen, str_z(made[t].ids[i]), made));
        }
    map_release(&seen);
    free(made);
}

struct chain {
    pthread_mutex_t lock;
    char last[ID_TIME_LEN + 1];
};

static void *extend_chain(void *ctx)
{
    struct chain *chain = ctx;

    for (size_t i = 0; i < 5000; i++) {
        char id[ID_TIME_LEN + 1];
        pthread_mutex_lock(&chain->lock);
        id_time(id);
        CHECK(strcmp(chain->last, id) < 0);
        memcpy(chain->last, id, sizeof(id));
        pthread_mutex_unlock(&chain->lock);
    }
    return NULL;
}

TEST(ids, a_later_id_sorts_behind_an_earlier_one_of_another_thread)
{
    struct chain chain = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS];

    for (size_t t = 0; t < THREADS; t++)
        CHECK_INT(pthread_create(&threads[t], NULL, extend_chain, &chain), 0);
    for (size_t t = 0; t < THREADS; t++)
        CHECK_INT(pthread_join(threads[t], NULL), 0);
}

TEST(ids, letters_come_from_their_alphabets)
{
    char hex[ID_HEX_LEN + 1], other[ID_HEX_LEN + 1], key[21], secret[41];

    id_hex(hex);
    id_hex(other);
    CHECK_INT(strspn(hex, "0123456789abcdef"), ID_HEX_LEN);
    CHECK(strcmp(hex, other) != 0);
    id_access_key(key, 20);
    CHECK_INT(strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), 20);
    CHECK_INT(key[20], '\0');
    id_secret(secret, 40);
    CHECK_INT(strlen(secret), 40);
}

TEST(ids, random_numbers_stay_below_their_bound_and_meet_all)
{
    unsigned seen = 0;

    for (int i = 0; i < 10000; i++) {
        uint64_t v = random_below(10);
        CHECK(v < 10);
        seen |= 1u << v;
        CHECK_INT(random_below(1), 0);
    }
    CHECK_INT(seen, 0x3ff);
}
