/* Names of local storages, over both engines of the store. */
#include "coord/claim.h"

#include "unit/store/embedded_test.h"
#include "unit/store/four.h"

static struct replications *open_replications(struct four *f)
{
    struct store **d = f->stores;
    struct replications_options o = {
        .app = d[DB_APP], .queue = d[DB_QUEUE], .config = d[DB_CONFIG]};
    struct replications *r = NULL;
    struct err err = {0};

    CHECK_OK(replications_open(&r, &o, &err));
    return r;
}

#define CLAIM(name, folder, where) ((struct claim){STR(name), STR(folder), STR(where)})

static void check_says(const struct err *err, const char *what)
{
    if (str_find(str_z(err->text), str_z(what)) < 0)
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err->text, what);
}

/* N1, N4 */
TEST_FOUR(claim, a_name_is_of_one_folder_until_it_is_taken_over)
{
    struct replications *r = open_replications(f);
    struct claim one = CLAIM("a:b", "11", "here:/one two"), moved = CLAIM("a:b", "11", "there:/1"),
                 two = CLAIM("a:b", "111", "there:/two");
    struct err err = {0};

    check_reply(f->stores[DB_APP], "SET w:tap:a%3Ab 7", "OK");
    CHECK_ERR(claim_check(r, &one, &err), ERR_NOT_FOUND);
    CHECK_OK(claim_take(r, &one, false, &err));
    CHECK_OK(claim_check(r, &one, &err));
    CHECK_ERR(claim_check(r, &two, &err), ERR_CONFLICT);
    CHECK_ERR(claim_take(r, &two, false, &err), ERR_CONFLICT);
    check_says(&err, "the storage a:b is the folder here:/one two, not there:/two");
    CHECK_OK(claim_take(r, &moved, false, &err));
    CHECK_OK(claim_check(r, &one, &err));
    check_reply(f->stores[DB_CONFIG], "HGET w:storages a%3Ab", "\"11 there:/1\"");
    check_reply(f->stores[DB_APP], "GET w:tap:a%3Ab", "\"7\"");
    CHECK_OK(claim_take(r, &two, true, &err));
    CHECK_ERR(claim_check(r, &one, &err), ERR_CONFLICT);
    check_reply(f->stores[DB_APP], "EXISTS w:tap:a%3Ab", "0");
    struct claim other = CLAIM("a", "11", "here:/one");
    CHECK_OK(claim_take(r, &other, false, &err));
    CHECK_OK(claim_check(r, &two, &err));
    replications_close(r);
}
