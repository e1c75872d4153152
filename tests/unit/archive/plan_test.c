/* Plans of syncs: what is done with each repository, by list and record. */
#include "archive/plan.h"
#include "base/clock.h"
#include "unit/test.h"

#define NOW INT64_C(1700000000000)

struct desk {
    struct archive_record old;
    struct plan plan;
};

/* A record of repositories `first` to `first + count - 1`, on pages of two. */
static void desk_open(struct desk *d, size_t count)
{
    archive_record_init(&d->old);
    for (size_t i = 0; i < count; i++) {
        struct record_repo r = {.id = arena_fmt(&d->old.arena, "%zu", i),
                                .name = arena_fmt(&d->old.arena, "r%zu", i),
                                .pushed_at = STR("then"),
                                .refs_digest = STR("digest"),
                                .looked_ms = NOW - MS_PER_DAY,
                                .listed = true};
        vec_push(&d->old.repos, r);
        if (i % 2 == 0) {
            struct record_page p = {.url = arena_fmt(&d->old.arena, "p%zu", i / 2),
                                    .etag = STR("e")};
            vec_push(&d->old.pages, p);
        }
        vec_last(&d->old.pages)->repos++;
    }
    plan_init(&d->plan, &d->old, NOW);
    d->plan.look_ms = 7 * (uint64_t)MS_PER_DAY;
}

static void desk_close(struct desk *d)
{
    plan_release(&d->plan);
    archive_record_release(&d->old);
}

static void desk_list(struct desk *d, const char *id, const char *name, const char *pushed_at)
{
    struct plan_listed r = {.id = str_z(id), .name = str_z(name), .pushed_at = str_z(pushed_at)};
    struct err err = {0};

    CHECK_OK(plan_add(&d->plan, &r, &err));
}

static int desk_end(struct desk *d, const struct plan_page *pages, size_t count)
{
    struct err err = {0};

    return plan_end(&d->plan, pages, count, &err);
}

static void desk_expect(const struct desk *d, size_t at, enum plan_step step, const char *name,
                        bool known)
{
    const struct plan_item *i = &d->plan.items.items[at];

    CHECK(at < d->plan.items.len);
    CHECK_INT(i->step, step);
    CHECK_STR(i->next.name, str_z(name));
    CHECK_INT(i->old != NULL, known);
}

TEST(archive_plan, unchanged_pages_are_kept)
{
    struct desk d;
    struct plan_page pages[] = {{.url = STR("p0"), .unchanged = true},
                                {.url = STR("p1"), .unchanged = true}};

    desk_open(&d, 3);
    CHECK_INT(desk_end(&d, pages, 2), 0);
    CHECK_INT(d.plan.items.len, 3);
    for (size_t i = 0; i < 3; i++)
        CHECK_INT(d.plan.items.items[i].step, PLAN_KEEP);
    CHECK_STR(d.plan.items.items[2].next.refs_digest, STR("digest"));
    CHECK_INT(d.plan.pages.len, 2);
    desk_close(&d);
}

TEST(archive_plan, a_changed_page_is_joined_with_kept_ones)
{
    struct desk d;
    struct plan_page pages[] = {{.url = STR("p0"), .unchanged = true},
                                {STR("p1"), STR("new"), 3, false}};

    desk_open(&d, 4);
    desk_list(&d, "2", "r2", "then");   /* as before */
    desk_list(&d, "3", "r3", "now");    /* pushed to */
    desk_list(&d, "7", "fresh", "now"); /* new */
    CHECK_INT(desk_end(&d, pages, 2), 0);
    CHECK_INT(d.plan.items.len, 5);
    desk_expect(&d, 0, PLAN_KEEP, "r0", true);
    desk_expect(&d, 2, PLAN_KEEP, "r2", true);
    desk_expect(&d, 3, PLAN_SYNC, "r3", true);
    desk_expect(&d, 4, PLAN_SYNC, "fresh", false);
    CHECK_STR(d.plan.pages.items[1].etag, STR("new"));
    desk_close(&d);
}

TEST(archive_plan, a_rename_and_a_name_that_is_used_again_are_told_by_number)
{
    struct desk d;
    struct plan_page pages[] = {{STR("p0"), STR("e2"), 2, false}};

    desk_open(&d, 1);
    desk_list(&d, "9", "r0", "now");     /* another repository has the name */
    desk_list(&d, "0", "other", "then"); /* the old one has a new name */
    CHECK_INT(desk_end(&d, pages, 1), 0);
    CHECK_INT(d.plan.items.len, 2);
    desk_expect(&d, 0, PLAN_SYNC, "r0", false);
    desk_expect(&d, 1, PLAN_SYNC, "other", true);
    CHECK_STR(d.plan.items.items[1].old->name, STR("r0"));
    CHECK(d.plan.items.items[1].old_name_taken);
    desk_close(&d);
}

/* What is said about the repository that had the name before must not stand beside the new one. */
TEST(archive_plan, a_missing_repository_whose_name_is_taken_goes_on_under_its_number)
{
    struct desk d;
    struct plan_page pages[] = {{STR("p0"), STR("e2"), 1, false}};

    desk_open(&d, 1);
    d.old.repos.items[0].code = ARCHIVE_GONE;
    desk_list(&d, "9", "r0", "now");
    CHECK_INT(desk_end(&d, pages, 1), 0);
    CHECK_INT(d.plan.items.len, 2);
    desk_expect(&d, 0, PLAN_SYNC, "r0", false);
    desk_expect(&d, 1, PLAN_ASK, "r0@0", true);
    CHECK_INT(d.plan.items.items[1].next.refs_digest.len, 0);
    desk_close(&d);
}

TEST(archive_plan, what_the_list_lacks_is_asked_for_once)
{
    struct desk d;
    struct plan_page pages[] = {{STR("p0"), STR("e2"), 1, false}};

    desk_open(&d, 3);
    d.old.repos.items[2].code = ARCHIVE_GONE;
    desk_list(&d, "0", "r0", "then");
    CHECK_INT(desk_end(&d, pages, 1), 0);
    CHECK_INT(d.plan.items.len, 3);
    desk_expect(&d, 1, PLAN_ASK, "r1", true);
    desk_expect(&d, 2, PLAN_KEEP, "r2", true);
    CHECK(!d.plan.items.items[1].next.listed);
    desk_close(&d);
}

TEST(archive_plan, refs_are_compared_every_week)
{
    struct desk d;
    struct plan_page pages[] = {{.url = STR("p0"), .unchanged = true}};

    desk_open(&d, 2);
    d.old.repos.items[0].looked_ms = NOW - 7 * (int64_t)MS_PER_DAY;
    d.old.repos.items[1].looked_ms = NOW + MS_PER_DAY; /* a clock was wrong */
    CHECK_INT(desk_end(&d, pages, 1), 0);
    desk_expect(&d, 0, PLAN_SYNC, "r0", true);
    desk_expect(&d, 1, PLAN_SYNC, "r1", true);
    desk_close(&d);
}

/* GitLab counts a project's activity once an hour, so its list does not show every push. */
TEST(archive_plan, refs_are_compared_where_the_list_does_not_show_pushes)
{
    struct desk d;
    struct plan_page pages[] = {{.url = STR("p0"), .unchanged = true}};

    desk_open(&d, 2);
    d.plan.look_ms = 0;
    CHECK_INT(desk_end(&d, pages, 1), 0);
    desk_expect(&d, 0, PLAN_SYNC, "r0", true);
    desk_expect(&d, 1, PLAN_SYNC, "r1", true);
    desk_close(&d);
}

TEST(archive_plan, outcomes_that_are_not_over_are_tried_again)
{
    struct desk d;
    struct plan_page pages[] = {{STR("p0"), STR("e"), 4, false}};

    desk_open(&d, 4);
    d.old.repos.items[0].code = ARCHIVE_DMCA;     /* stays until the weekly look */
    d.old.repos.items[1].code = ARCHIVE_DISABLED; /* was switched on again */
    d.old.repos.items[2].code = ARCHIVE_GONE;     /* has come back */
    d.old.repos.items[3].code = ARCHIVE_TIMEOUT;
    desk_list(&d, "0", "r0", "then");
    desk_list(&d, "1", "r1", "then");
    desk_list(&d, "2", "r2", "then");
    desk_list(&d, "3", "r3", "then");
    CHECK_INT(desk_end(&d, pages, 1), 0);
    desk_expect(&d, 0, PLAN_KEEP, "r0", true);
    desk_expect(&d, 1, PLAN_SYNC, "r1", true);
    desk_expect(&d, 2, PLAN_SYNC, "r2", true);
    desk_expect(&d, 3, PLAN_SYNC, "r3", true);
    desk_close(&d);
}

/* The list changes between two pages: a repository comes twice, and the pages are not kept. */
TEST(archive_plan, listing_changes_between_pages)
{
    struct desk d;
    struct plan_page pages[] = {{STR("p0"), STR("e"), 2, false}, {STR("p1"), STR("e"), 2, false}};

    desk_open(&d, 0);
    desk_list(&d, "1", "a", "now");
    desk_list(&d, "2", "b", "now");
    desk_list(&d, "2", "b", "now");
    desk_list(&d, "3", "c", "now");
    CHECK_INT(desk_end(&d, pages, 2), 0);
    CHECK_INT(d.plan.items.len, 3);
    CHECK_INT(d.plan.pages.len, 0);
    desk_close(&d);
}

TEST(archive_plan, pages_that_do_not_fit_are_refused)
{
    struct plan_page unknown[] = {{.url = STR("p9"), .unchanged = true}};
    struct plan_page more[] = {{STR("p0"), STR("e"), 2, false}};
    struct desk d;

    desk_open(&d, 2);
    CHECK_INT(desk_end(&d, unknown, 1), ERR_CORRUPT);
    desk_close(&d);
    desk_open(&d, 0);
    desk_list(&d, "1", "a", "now");
    CHECK_INT(desk_end(&d, more, 1), ERR_CORRUPT);
    desk_close(&d);
    desk_open(&d, 0);
    desk_list(&d, "1", "a", "now");
    CHECK_INT(desk_end(&d, NULL, 0), ERR_CORRUPT);
    desk_close(&d);
}
