/* Looks at the newest map's number that reads share. */
#include "shard/proof.h"
#include "base/clock.h"
#include "shard/log.h"
#include "unit/object/local_lab.h"
#include "unit/shard/lossy.h"
#include "unit/shard/map_lab.h"
#include "unit/test.h"

enum { PROOF_READERS = 8 };

/* A log whose listings wait for the test's permission. */
struct proof_lab {
    struct local_lab local;
    struct bucket *bucket;
    struct lossy lossy;
    struct shard_map *map;
    struct shard_proof proof;
    _Atomic(int) looks, allowed; /* begun; that may end */
    _Atomic(bool) fails;
};

static enum lossy_fault proof_fault(void *ctx, const char *call)
{
    struct proof_lab *l = ctx;
    int mine = ++l->looks;

    CHECK_SOON(l->allowed >= mine);
    return l->fails ? LOSSY_ERROR : LOSSY_NONE;
}

static void proof_lab_commit(struct proof_lab *l)
{
    struct err err = {0};

    CHECK_OK(log_commit(l->bucket, l->map, clock_mono_ns() + 60 * NS_PER_S, &err));
}

static void proof_lab_open(struct proof_lab *l)
{
    *l = (struct proof_lab){.map = map_lab_first()};
    local_lab_open(&l->local, NULL);
    l->bucket = lab_bucket(l->local.lab.storage, "map");
    lossy_init(&l->lossy, l->bucket, proof_fault, l);
    proof_init(&l->proof, &l->lossy.bucket);
    proof_lab_commit(l);
}

static void proof_lab_close(struct proof_lab *l)
{
    proof_release(&l->proof);
    map_unref(l->map);
    l->bucket->ops->unref(l->bucket);
    local_lab_close(&l->local);
}

struct proof_reader {
    struct proof_lab *lab;
    struct thread thread;
    uint64_t number;
    _Atomic(int) code; /* 1: not known yet */
};

static void proof_reader_run(void *ctx)
{
    struct proof_reader *r = ctx;
    struct err err = {0};

    r->code = proof_look(&r->lab->proof, &r->number, &err);
}

static void proof_reader_start(struct proof_reader *r, struct proof_lab *l)
{
    struct err err = {0};

    *r = (struct proof_reader){.lab = l, .code = 1};
    CHECK_OK(thread_start(&r->thread, "reader", 0, proof_reader_run, r, &err));
}

TEST(shard_proof, a_look_that_was_under_way_proves_nothing_and_the_next_one_proves_all)
{
    struct proof_lab l;
    struct proof_reader first, others[PROOF_READERS];

    proof_lab_open(&l);
    proof_reader_start(&first, &l);
    CHECK_SOON(l.looks == 1);
    for (int i = 0; i < PROOF_READERS; i++)
        proof_reader_start(&others[i], &l);
    map_lab_next(&l.map);
    proof_lab_commit(&l);
    CHECK_INT(l.looks, 1); /* the others wait, and do not look at the same time */
    l.allowed = 1 + PROOF_READERS;
    thread_join(&first.thread);
    CHECK_INT(first.code, 0);
    for (int i = 0; i < PROOF_READERS; i++) {
        thread_join(&others[i].thread);
        CHECK_INT(others[i].code, 0);
        CHECK_INT(others[i].number, l.map->number);
    }
    CHECK(l.looks <= 1 + PROOF_READERS);
    proof_lab_close(&l);
}

TEST(shard_proof, a_look_that_fails_proves_nothing)
{
    struct proof_lab l;
    struct err err = {0};
    uint64_t number = 7;

    proof_lab_open(&l);
    l.allowed = 2;
    l.fails = true;
    CHECK_ERR(proof_look(&l.proof, &number, &err), ERR_UNAVAILABLE);
    CHECK_INT(number, 7);
    l.fails = false;
    CHECK_OK(proof_look(&l.proof, &number, &err));
    CHECK_INT(number, l.map->number);
    proof_lab_close(&l);
}
