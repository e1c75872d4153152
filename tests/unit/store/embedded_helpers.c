/* Opening, closing and checking the embedded store under test. */
#include "unit/store/embedded_test.h"

void fixture_open(struct fixture *f)
{
    struct err err = {0};
    struct db_options o = {
        .path = test_dir(), .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};

    CHECK_OK(db_open(&f->db, &o, &err));
    CHECK_OK(store_open_embedded(&f->s, f->db, 0, f->durability, NULL, &err));
}

void fixture_close(struct fixture *f)
{
    store_close(f->s);
    db_close(f->db);
}

void fixture_restart(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

struct store_check fixture_check(struct fixture *f)
{
    struct store_check check;
    struct err err = {0};

    CHECK_OK(store_check(&check, f->db, 0, &err));
    if (check.problems)
        test_fail(__FILE__, __LINE__, "%zu problems, the first: %s", check.problems, check.problem);
    return check;
}

void fixture_check_empty(struct fixture *f)
{
    CHECK_INT(fixture_check(f).rows, 0);
}

void check_script(struct store *s, const char *source, const char *want)
{
    struct arena arena = {0};
    struct buf got = {0};
    struct reply *reply;
    struct err err = {0};
    int rc = store_call(s, &arena, &reply, &err, STR("EVAL"), str_z(source), STR("0"));

    if (rc < 0)
        buf_appendf(&got, "!%s", err_name(rc));
    else
        reply_print(&got, reply);
    CHECK_STR(buf_str(&got), str_z(want));
    buf_release(&got);
    arena_release(&arena);
}
