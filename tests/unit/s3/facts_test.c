/* Facts of buckets that lie over several buckets: they are kept as those of plain buckets are, and
 * never used when they are old (docs/gateway.md, G5). */
#include "s3/gateway/gateway_int.h"
#include "unit/object/fake_overlay.h"
#include "unit/object/local_lab.h"

struct facts_lab {
    struct local_lab l;
    struct storage *home;
    struct fake_overlay overlay;
    struct facts_table *table;
};

static void facts_lab_open(struct facts_lab *l)
{
    local_lab_open(&l->l, NULL);
    l->home = l->l.lab.storage;
    fake_overlay_open(&l->overlay, l->home, l->home, "m");
    l->table = facts_table_new();
}

static void facts_lab_close(struct facts_lab *l)
{
    facts_table_free(l->table);
    atomic_store(&l->home->overlay, NULL);
    fake_overlay_close(&l->overlay);
    local_lab_close(&l->l);
}

/* Reads and keeps the facts of the bucket "box". */
static void facts_lab_read(struct facts_lab *l)
{
    struct bucket *b = NULL;
    struct facts *f = NULL;
    struct err err = {0};

    CHECK_OK(storage_open_bucket(&b, l->home, STR_EMPTY, STR("box"), &err));
    CHECK_OK(facts_read(&f, b, true, &err));
    facts_keep(l->table, f);
    facts_unref(f);
}

static bool facts_lab_has(struct facts_lab *l)
{
    struct facts *f = facts_find(l->table, l->home, STR("box"));

    facts_unref(f);
    return f != NULL;
}

TEST(facts, of_a_bucket_over_several_buckets_are_kept_until_a_document_changes)
{
    struct facts_lab l;
    struct bucket *b;
    struct err err = {0};

    facts_lab_open(&l);
    atomic_store(&l.home->overlay, &l.overlay.overlay);
    b = lab_bucket(l.home, "box");
    CHECK(!b->storage);
    CHECK(!facts_lab_has(&l));
    facts_lab_read(&l);
    CHECK(facts_lab_has(&l));
    CHECK_OK(b->ops->set_document(b, "cors", STR("<CORSConfiguration/>"), &err));
    CHECK(!facts_lab_has(&l));
    facts_lab_read(&l);
    CHECK(facts_lab_has(&l));
    b->ops->unref(b);
    facts_lab_close(&l);
}

TEST(facts, of_a_plain_bucket_end_when_it_is_taken_over_and_the_reverse)
{
    struct facts_lab l;
    struct bucket *b;

    facts_lab_open(&l);
    atomic_store(&l.home->overlay, &l.overlay.overlay);
    b = lab_bucket(l.home, "box");
    facts_lab_read(&l);
    CHECK(facts_lab_has(&l));
    atomic_store(&l.home->overlay, NULL); /* the bucket is plain now */
    CHECK(!facts_lab_has(&l));
    facts_lab_read(&l);
    CHECK(facts_lab_has(&l));
    atomic_store(&l.home->overlay, &l.overlay.overlay);
    CHECK(!facts_lab_has(&l));
    b->ops->unref(b);
    facts_lab_close(&l);
}
