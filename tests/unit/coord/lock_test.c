/* Locks over both engines (docs/replication.md C1, C2). */
#include "coord/lock.h"
#include "base/clock.h"
#include "os/thread.h"
#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

#include <stdatomic.h>
#include <stdio.h>

static struct locks *open_locks(struct four *f, uint64_t ttl_ms)
{
    struct locks_options o = {.store = f->stores[DB_LOCK], .ttl_ms = ttl_ms};
    struct locks *l;
    struct err err = {0};

    CHECK_OK(locks_open(&l, &o, &err));
    return l;
}

TEST(lock, keys_are_the_seeds)
{
    struct buf b = {0};

    lock_key_object(&b, STR("cold"), STR("photos"), STR("a:b%/c"));
    CHECK_STR(buf_str(&b), STR("lk:cold:photos:a%3Ab%25/c"));
    buf_reset(&b);
    lock_key_bucket(&b, STR("cold"), STR("photos"));
    CHECK_STR(buf_str(&b), STR("lkb:cold:photos"));
    buf_reset(&b);
    lock_key_user(&b, STR("cold"), STR("anna"));
    CHECK_STR(buf_str(&b), STR("lku:cold:anna"));
    buf_release(&b);
}

TEST_FOUR(lock, one_has_it_at_a_time)
{
    struct locks *a = open_locks(f, 0), *b = open_locks(f, 0);
    struct lock *mine, *theirs;
    struct err err = {0};

    CHECK_OK(lock_take(&mine, a, STR("lk:x"), &err));
    CHECK_ERR(lock_take(&theirs, b, STR("lk:x"), &err), ERR_BUSY);
    CHECK_ERR(lock_take(&theirs, a, STR("lk:x"), &err), ERR_BUSY);
    CHECK(lock_held(mine));
    lock_release(mine);
    CHECK_OK(lock_take(&theirs, b, STR("lk:x"), &err));
    lock_release(theirs);
    check_reply(f->stores[DB_LOCK], "EXISTS lk:x", "0");
    locks_close(a);
    locks_close(b);
}

TEST_FOUR(lock, of_several_those_that_are_free_are_taken)
{
    const struct str keys[] = {STR("lk:x"), STR("lk:y"), STR("lk:z")};
    struct locks *a = open_locks(f, 0), *b = open_locks(f, 0);
    struct lock *theirs, *mine[3];
    struct err err = {0};

    CHECK_OK(lock_take(&theirs, b, STR("lk:y"), &err));
    CHECK_OK(lock_take_many(mine, a, keys, 3, &err));
    CHECK(mine[0] && !mine[1] && mine[2] && lock_held(mine[2]));
    check_reply(f->stores[DB_LOCK], "EXISTS lk:x lk:y lk:z", "3");
    lock_release_many(mine, 3);
    check_reply(f->stores[DB_LOCK], "EXISTS lk:x lk:y lk:z", "1");
    CHECK(lock_held(theirs));
    lock_release(theirs);
    locks_close(a);
    locks_close(b);
}

/* Longer than its life, by being refreshed. */
TEST_FOUR(lock, one_that_is_held_does_not_end)
{
    struct locks *l = open_locks(f, 300);
    struct store *s = f->stores[DB_LOCK];
    struct lock *mine;
    struct err err = {0};
    const char *got = "";
    uint64_t until = clock_mono_ns() + 900 * NS_PER_MS;

    CHECK_OK(lock_take(&mine, l, STR("lk:x"), &err));
    while (clock_mono_ns() < until && lock_held(mine))
        ;
    /* A machine that stood still for 300 ms loses it, and says so. */
    CHECK_INT(ask(s, "EXISTS lk:x", &got), 0);
    CHECK(strcmp(got, "1") == 0 || !lock_held(mine));
    lock_release(mine);
    locks_close(l);
}

TEST_FOUR(lock, one_that_another_took_is_known_to_be_lost)
{
    struct locks *l = open_locks(f, 300);
    struct store *s = f->stores[DB_LOCK];
    struct lock *mine;
    struct err err = {0};

    CHECK_OK(lock_take(&mine, l, STR("lk:x"), &err));
    check_reply(s, "SET lk:x another", "OK");
    while (lock_held(mine))
        ;
    lock_release(mine);
    check_reply(s, "GET lk:x", "\"another\""); /* not ours to release */
    locks_close(l);
}

struct contest {
    struct locks *l;
    _Atomic(int) inside, most, rounds;
};

static void compete(void *ctx)
{
    struct contest *c = ctx;

    for (int i = 0; i < 20; i++) {
        struct lock *lock;
        struct err err = {0};
        if (lock_wait(&lock, c->l, STR("lk:x"), 30000, &err) < 0)
            continue;
        int now = atomic_fetch_add(&c->inside, 1) + 1;
        if (now > atomic_load(&c->most))
            atomic_store(&c->most, now);
        atomic_fetch_sub(&c->inside, 1);
        atomic_fetch_add(&c->rounds, 1);
        lock_release(lock);
    }
}

TEST_FOUR(lock, those_who_wait_get_it_in_turn)
{
    struct contest c = {.l = open_locks(f, 0)};
    struct thread threads[4] = {0};
    struct err err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_OK(thread_start(&threads[i], "compete", 0, compete, &c, &err));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        thread_join(&threads[i]);
    CHECK_INT(atomic_load(&c.most), 1);
    CHECK_INT(atomic_load(&c.rounds), 80);
    locks_close(c.l);
}

/* Nobody waits for hours for one that died. */
TEST_FOUR(lock, one_that_was_taken_by_a_clock_ahead_is_taken_by_the_next)
{
    struct locks *a = open_locks(f, 0);
    struct lock *lock;
    struct err err = {0};

    check_reply(f->stores[DB_LOCK], "SET lk:x dead PX 7200000", "OK");
    check_reply(f->stores[DB_LOCK], "SET lk:y alive PX 10000", "OK");
    CHECK_OK(lock_take(&lock, a, STR("lk:x"), &err));
    CHECK(lock_held(lock));
    lock_release(lock);
    check_reply(f->stores[DB_LOCK], "EXISTS lk:x", "0");
    CHECK_ERR(lock_take(&lock, a, STR("lk:y"), &err), ERR_BUSY);
    locks_close(a);
}

/* A script has set the key; from then on it is renewed like any other. */
TEST_FOUR(lock, one_that_a_script_took_is_kept)
{
    struct locks *l = open_locks(f, 300);
    struct store *s = f->stores[DB_LOCK];
    struct lock *mine;
    struct err err = {0};
    const char *got = "";
    uint64_t since = clock_mono_ns(), until = since + 900 * NS_PER_MS;

    check_reply(s, "SET lock:octocat 17-abc PX 300", "OK");
    CHECK_OK(lock_adopt(&mine, l, STR("lock:octocat"), STR("17-abc"), since, &err));
    CHECK_STR(lock_token(mine), STR("17-abc"));
    while (clock_mono_ns() < until && lock_held(mine))
        ;
    CHECK_INT(ask(s, "GET lock:octocat", &got), 0);
    CHECK(strcmp(got, "\"17-abc\"") == 0 || !lock_held(mine));
    lock_leave(mine);
    locks_close(l);
}

/* It is neither renewed nor removed any more. */
TEST_FOUR(lock, one_that_is_left_ends_by_itself)
{
    struct locks *l = open_locks(f, 300);
    struct store *s = f->stores[DB_LOCK];
    struct lock *mine;
    struct err err = {0};
    const char *got = "";

    CHECK_OK(lock_take(&mine, l, STR("lk:x"), &err));
    lock_leave(mine);
    check_reply(s, "EXISTS lk:x", "1");
    CHECK_SOON(ask(s, "EXISTS lk:x", &got) == 0 && strcmp(got, "0") == 0);
    lock_leave(NULL);
    locks_close(l);
}

/* By its own clock, a tenth before the store lets another have it. */
TEST_FOUR(lock, one_that_cannot_be_renewed_is_given_up_before_it_ends)
{
    struct locks *l = open_locks(f, 10000);
    struct lock *mine;
    struct err err = {0};
    uint64_t now = clock_mono_ns();

    CHECK_OK(lock_adopt(&mine, l, STR("lock:x"), STR("1-a"), now - 8900 * NS_PER_MS, &err));
    CHECK(lock_held(mine) || clock_mono_ns() > now + 100 * NS_PER_MS);
    lock_leave(mine);
    CHECK_OK(lock_adopt(&mine, l, STR("lock:x"), STR("1-a"), now - 9000 * NS_PER_MS, &err));
    CHECK(!lock_held(mine));
    lock_leave(mine);
    locks_close(l);
}

TEST_FOUR(lock, refresh_of_foreign_lock_refused)
{
    struct locks *l = open_locks(f, 300);
    struct store *s = f->stores[DB_LOCK];
    struct lock *mine;
    struct err err = {0};
    const char *got = "";

    check_reply(s, "SET lock:octocat 1 PX 2000", "OK");
    CHECK_OK(lock_adopt(&mine, l, STR("lock:octocat"), STR("17-abc"), clock_mono_ns(), &err));
    CHECK_SOON(!lock_held(mine));
    CHECK_SOON(ask(s, "EXISTS lock:octocat", &got) == 0 && strcmp(got, "0") == 0);
    lock_release(mine);
    locks_close(l);
}

TEST_FOUR(lock, tokens_have_a_limit)
{
    struct locks *l = open_locks(f, 300);
    struct lock *mine;
    struct err err = {0};
    char token[LOCK_TOKEN_MAX + 1];

    memset(token, 'x', sizeof(token));
    CHECK_ERR(lock_adopt(&mine, l, STR("k"), str_n(token, sizeof(token)), 0, &err), ERR_INVALID);
    CHECK_ERR(lock_adopt(&mine, l, STR("k"), STR_EMPTY, 0, &err), ERR_INVALID);
    CHECK_OK(lock_adopt(&mine, l, STR("k"), str_n(token, LOCK_TOKEN_MAX), 0, &err));
    lock_leave(mine);
    locks_close(l);
}
