/* The table of lakeFS's operations: each is there once, with its id. */
#include "lake/rest/web.h"
#include "unit/test.h"

enum { PUBLISHED = 134, REFUSED = 35 }; /* operations of the published API */

static bool is_own(const struct web_op *op)
{
    return str_starts(str_z(op->id), STR("weir"));
}

TEST(lake_rest_operations, every_operation_of_the_published_api_has_one_row)
{
    const char *ids[2 * PUBLISHED];
    size_t count = 0, refused = 0;

    for (const struct rest_table *const *t = lake_routes; *t; t++) {
        CHECK((*t)->dialect == &lake_dialect);
        for (const struct rest_row *row = (*t)->rows; row < (*t)->rows + (*t)->count; row++) {
            const struct web_op *op = row->more;
            CHECK(op && op->id && str_starts(str_z(row->path), STR("/api/v1/")));
            for (size_t i = 0; i < count; i++)
                CHECK(strcmp(ids[i], op->id) != 0);
            CHECK(count < ARRAY_SIZE(ids));
            if (!is_own(op))
                ids[count++] = op->id;
            refused += op->reason && str_starts(str_z(op->reason), STR("weir "));
        }
    }
    CHECK_INT(count, PUBLISHED);
    CHECK_INT(refused, REFUSED);
}

TEST(lake_rest_operations, errors_have_the_statuses_that_clients_expect)
{
    static const struct {
        int code, status;
    } cases[] = {
        {ERR_NOT_MODIFIED, 400}, {ERR_IN_USE, 400},  {ERR_GONE, 410},
        {ERR_PRECONDITION, 412}, {ERR_RANGE, 416},   {ERR_BUSY, 429},
        {ERR_VERSION, 503},      {ERR_NOT_FOUND, 0}, /* as in weir's own calls */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK_INT(lake_dialect.status(cases[i].code), cases[i].status);
}
