/* weir storage: storages of a running weir. */
#include "cli/commands.h"
#include "cli/manage.h"

static const struct output_column storage_columns[] = {{"name"}, {"kind"}, {"main"}};
static const struct output_column test_columns[] = {{"name"}, {"ok"}, {"error"}};
static const struct output_column damage_columns[] = {
    {"damage"}, {"bucket"}, {"key"}, {"version"}, {"path"}};

static int add(struct remote *r, const struct invocation *inv, struct output *table,
               struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *answer = NULL;
    int code;

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "name", str_z(inv->args.items[0]));
    json_out_member_str(&w, "kind", STR("local"));
    json_out_member_str(&w, "folder", str_z(inv->args.items[1]));
    json_out_close(&w, '}');
    code = remote_send(r, &answer, "POST", "/api/v1/storages", body.p, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    buf_release(&body);
    return code;
}

static int list(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL, *storage;
    size_t i;
    int code = remote_send(r, &answer, "GET", "/api/v1/storages", NULL, err);

    (void)inv;
    if (code == 0)
        json_array_foreach(json_object_get(answer, "storages"), i, storage)
            manage_row(table, storage);
    json_decref(answer);
    return code;
}

/* What is wrong is in the table; the code makes the exit status. */
static int test(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL;
    int code =
        remote_send(r, &answer, "POST",
                    manage_path(r, "/api/v1/storages/", inv->args.items[0], "/test"), "{}", err);

    if (code == 0) {
        manage_row(table, answer);
        code = json_get_bool(answer, "ok", false) ? 0 : ERR_UNAVAILABLE;
    }
    json_decref(answer);
    return code;
}

static int scrub(struct remote *r, const struct invocation *inv, struct output *table,
                 struct err *err)
{
    json_t *answer = NULL, *finding;
    size_t i;
    int code =
        remote_send(r, &answer, "POST",
                    manage_path(r, "/api/v1/storages/", inv->args.items[0], "/scrub"), "{}", err);

    if (code == 0) {
        int64_t findings = json_get_i64(answer, "findings", 0);
        json_array_foreach(json_object_get(answer, "damaged"), i, finding)
            manage_row(table, finding);
        if (findings)
            code = err_set(err, ERR_CORRUPT, "%jd findings", (intmax_t)findings);
    }
    json_decref(answer);
    return code;
}

int command_storage_add(struct invocation *inv)
{
    return manage(inv, storage_columns, ARRAY_SIZE(storage_columns), add);
}

int command_storage_list(struct invocation *inv)
{
    return manage(inv, storage_columns, ARRAY_SIZE(storage_columns), list);
}

int command_storage_test(struct invocation *inv)
{
    return manage(inv, test_columns, ARRAY_SIZE(test_columns), test);
}

int command_storage_scrub(struct invocation *inv)
{
    return manage(inv, damage_columns, ARRAY_SIZE(damage_columns), scrub);
}
