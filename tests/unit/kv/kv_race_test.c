/* Conformance of every driver: writes from many threads at once. */
#include "base/ids.h"
#include "os/thread.h"
#include "unit/kv/kv_lab.h"

#include <stdio.h>

enum { THREADS = 16, ACCOUNTS = 4, MOVES = 40, EACH = 1000 };

struct mover {
    struct thread thread;
    struct kv *kv;
};

static struct kv_name account_name(char out[2], size_t n)
{
    out[0] = (char)('a' + n);
    return (struct kv_name){STR("accounts"), str_n(out, 1)};
}

static struct kv_change money_put(char text[24], const struct kv_name *name,
                                  const struct kv_value *old, int64_t change)
{
    int64_t amount;

    CHECK(str_i64(old->bytes, &amount) == 0);
    int len = snprintf(text, 24, "%lld", (long long)(amount + change));
    return (struct kv_change){.what = KV_PUT,
                              .name = *name,
                              .value = str_n(text, (size_t)len),
                              .when = KV_SAME,
                              .stamp = old->stamp};
}

/* Takes from one account and gives to another in one write, unless another thread was faster. */
static int move_once(struct kv *kv, struct arena *a)
{
    size_t from = random_below(ACCOUNTS), to = (from + 1 + random_below(ACCOUNTS - 1)) % ACCOUNTS;
    int64_t amount = (int64_t)random_below(100);
    char keys[2][2], texts[2][24];
    struct kv_name names[] = {account_name(keys[0], from), account_name(keys[1], to)};
    struct kv_value values[2];
    struct err err = {0};

    CHECK_OK(kv_get_many(kv, NULL, a, names, 2, values, &err));
    struct kv_change changes[] = {money_put(texts[0], &names[0], &values[0], -amount),
                                  money_put(texts[1], &names[1], &values[1], amount)};
    int code = kv_write(kv, changes, 2, NULL, &err);
    if (code != ERR_PRECONDITION)
        CHECK_OK(code);
    return code;
}

static void mover_main(void *ctx)
{
    struct mover *m = ctx;

    for (int i = 0; i < MOVES; i++) {
        struct arena a = {0};
        while (move_once(m->kv, &a) == ERR_PRECONDITION)
            ;
        arena_release(&a);
    }
}

static int64_t sum_of(struct kv *kv)
{
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    int64_t sum = 0, amount;

    CHECK_OK(kv_scan_open(&scan, kv, NULL, STR("accounts"), NULL, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0) {
        CHECK(str_i64(value, &amount) == 0);
        sum += amount;
    }
    kv_scan_free(scan);
    return sum;
}

/* The sum of all accounts is the same at every moment. */
KV_LAB_TEST(kv, writes_of_16_threads_keep_a_sum)
{
    struct mover movers[THREADS] = {0};
    struct kv *second = kv_lab_open_second(lab);
    char key[2];
    struct err err = {0};

    for (size_t i = 0; i < ACCOUNTS; i++)
        CHECK_OK(kv_set(lab->kv, account_name(key, i), STR("1000"), &err));
    for (size_t i = 0; i < THREADS; i++) {
        movers[i].kv = i % 2 ? lab->kv : second;
        CHECK_OK(thread_start(&movers[i].thread, "mover", 0, mover_main, &movers[i], &err));
    }
    for (int i = 0; i < 20; i++)
        CHECK_INT(sum_of(lab->kv), ACCOUNTS * EACH);
    for (size_t i = 0; i < THREADS; i++)
        thread_join(&movers[i].thread);
    CHECK_INT(sum_of(lab->kv), ACCOUNTS * EACH);
    kv_close(second);
}

struct taker {
    struct thread thread;
    struct kv *kv;
    _Atomic(int) *winners;
};

static void taker_main(void *ctx)
{
    struct taker *t = ctx;
    struct err err = {0};

    for (unsigned i = 0; i < MOVES; i++) {
        unsigned char n = (unsigned char)i;
        struct kv_change changes[] = {
            {.what = KV_PUT,
             .name = {STR("b"), str_n(&n, 1)},
             .value = STR("x"),
             .when = KV_ABSENT},
            {.what = KV_PUT,
             .name = {STR("a"), str_n(&n, 1)},
             .value = STR("x"),
             .when = KV_ABSENT},
        };
        int code = kv_write(t->kv, changes, n % 2 + 1, NULL, &err);
        if (code != ERR_PRECONDITION)
            CHECK_OK(code);
        atomic_fetch_add(&t->winners[n], code == 0);
    }
}

KV_LAB_TEST(kv, of_16_threads_that_make_a_row_one_wins)
{
    struct taker takers[THREADS] = {0};
    _Atomic(int) winners[MOVES] = {0};
    struct err err = {0};

    for (size_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.kv = lab->kv, .winners = winners};
        CHECK_OK(thread_start(&takers[i].thread, "taker", 0, taker_main, &takers[i], &err));
    }
    for (size_t i = 0; i < THREADS; i++)
        thread_join(&takers[i].thread);
    for (size_t i = 0; i < MOVES; i++)
        CHECK_INT(atomic_load(&winners[i]), 1);
}

struct stager {
    struct thread thread;
    struct kv *kv;
    unsigned char id;
    _Atomic(bool) *sealed;
};

/* Writes rows under a check of the guard until the guard has changed. */
static void stager_main(void *ctx)
{
    struct stager *s = ctx;
    struct err err = {0};
    int code = 0;

    for (unsigned n = 0; code == 0; n++) {
        unsigned char key[] = {s->id, (unsigned char)(n >> 8), (unsigned char)n};
        struct kv_change changes[] = {
            {.what = KV_CHECK,
             .name = KV_NAME("p", "guard"),
             .when = KV_SAME,
             .stamp = STR("open")},
            {.what = KV_PUT, .name = {STR("rows"), str_n(key, 3)}, .value = STR("x")},
        };
        bool sealed = atomic_load(s->sealed);
        code = kv_write(s->kv, changes, 2, NULL, &err);
        CHECK(!(sealed && code == 0));
    }
    CHECK_ERR(code, ERR_PRECONDITION);
}

static size_t count_rows(struct kv *kv)
{
    struct kv_scan *scan = NULL;
    struct str key, value;
    struct err err = {0};
    size_t rows = 0;

    CHECK_OK(kv_scan_open(&scan, kv, NULL, STR("rows"), NULL, &err));
    while (kv_scan_next(scan, &key, &value, &err) == 0)
        rows++;
    kv_scan_free(scan);
    return rows;
}

/* When the guard has changed, no further row comes: what the lake's seal relies on. */
KV_LAB_TEST(kv, no_row_comes_behind_a_guard_that_has_changed)
{
    struct stager stagers[THREADS] = {0};
    _Atomic(bool) sealed = false;
    struct err err = {0};
    size_t rows;

    kv_lab_set(lab->kv, "p", "guard", "open");
    for (unsigned i = 0; i < THREADS; i++) {
        stagers[i] = (struct stager){.kv = lab->kv, .id = (unsigned char)i, .sealed = &sealed};
        CHECK_OK(thread_start(&stagers[i].thread, "stager", 0, stager_main, &stagers[i], &err));
    }
    CHECK_SOON(count_rows(lab->kv) > 2 * THREADS);
    kv_lab_set(lab->kv, "p", "guard", "sealed");
    rows = count_rows(lab->kv);
    atomic_store(&sealed, true);
    for (size_t i = 0; i < THREADS; i++)
        thread_join(&stagers[i].thread);
    CHECK_INT(count_rows(lab->kv), rows);
}
