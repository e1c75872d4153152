/* A schedule over three satellites (schedule_lab.h). */
#include "unit/archive/schedule_lab.h"

#include <stdarg.h>

void schedule_lab_open(struct schedule_lab *l, struct four *f, uint64_t lock_ms)
{
    const struct str names[] = {STR("asia-east-1"), STR("europe-west-1"), STR("us-central-1")};
    static const struct str hosts[] = {{"github.com", 10}, {"git.test:8443", 13}};
    struct err err = {0};

    *l = (struct schedule_lab){.four = f, .app = f->stores[DB_APP]};
    CHECK_OK(
        schedule_open(&l->s, &(struct schedule_options){.app = l->app, .lock_ms = lock_ms}, &err));
    CHECK_OK(slots_first(&l->table, names, ARRAY_SIZE(names), &err));
    CHECK_OK(schedule_map(l->s, &l->table, &err));
    for (size_t i = 0; i < LAB_SETS; i++)
        l->sets[i] = (struct schedule_set){hosts[i / 3], str_z(l->table.names[i % 3])};
    l->ask = (struct schedule_ask){l->sets, LAB_SETS, LAB_RESYNC_MS, 1};
}

void schedule_lab_close(struct schedule_lab *l)
{
    schedule_close(l->s);
    arena_release(&l->a);
}

struct archive_account schedule_lab_account(struct schedule_lab *l, const char *member)
{
    struct archive_account c;
    struct err err = {0};

    CHECK_OK(archive_account_read(&c, &l->a, str_z(member), &err));
    return c;
}

bool schedule_lab_add(struct schedule_lab *l, const char *member)
{
    struct archive_account c = schedule_lab_account(l, member);
    struct err err = {0};
    size_t added = 0;

    CHECK_OK(schedule_add(l->s, &c, 1, &added, &err));
    return added == 1;
}

bool schedule_lab_claim(struct schedule_lab *l, struct schedule_claim *out, uint64_t *wait_ms)
{
    uint64_t wait = 0;
    size_t count = 0;
    struct err err = {0};

    CHECK_OK(schedule_claim(l->s, &l->a, &l->ask, out, &count, &wait, &err));
    if (count == 0) /* a claim that finds nothing makes the next one look at leases and holds */
        CHECK_OK(schedule_claim(l->s, &l->a, &l->ask, out, &count, &wait, &err));
    if (wait_ms)
        *wait_ms = wait;
    return count == 1;
}

void schedule_lab_claim_this(struct schedule_lab *l, struct schedule_claim *out, const char *member)
{
    CHECK(schedule_lab_claim(l, out, NULL));
    CHECK_STR(out->member, str_z(member));
}

struct schedule_entry schedule_lab_find(struct schedule_lab *l, const char *member)
{
    struct archive_account c = schedule_lab_account(l, member);
    struct schedule_entry entry;
    struct err err = {0};

    CHECK_OK(schedule_find(l->s, &l->a, &c, &entry, &err));
    return entry;
}

void schedule_lab_check(struct schedule_lab *l)
{
    struct schedule_counts c;
    struct schedule_entry *entries;
    uint64_t next = 0;
    size_t count;
    struct err err = {0};

    CHECK_OK(schedule_counts(l->s, false, 0, &c, &err));
    CHECK_INT(c.tracked, c.ready + c.leased + c.held + c.odd);
    do {
        CHECK_OK(schedule_list(l->s, &l->a, &(struct schedule_page){.at = next, .limit = 1000},
                               &entries, &count, &next, &err));
        for (size_t i = 0; i < count; i++)
            CHECK(entries[i].state != SCHEDULE_UNKNOWN);
    } while (next);
}

struct str schedule_lab_ask(struct schedule_lab *l, const char *first, ...)
{
    struct str argv[16] = {str_z(first)};
    size_t argc = 1;
    struct reply *reply;
    struct buf text = {0};
    struct err err = {0};
    va_list ap;

    va_start(ap, first);
    for (const char *arg; (arg = va_arg(ap, const char *)) && argc < ARRAY_SIZE(argv);)
        argv[argc++] = str_z(arg);
    va_end(ap);
    CHECK_OK(store_command(l->app, &l->a, &reply, argv, argc, &err));
    reply_print(&text, reply);
    struct str out = arena_str(&l->a, buf_str(&text));
    buf_release(&text);
    return out;
}
