/* weir user: users of a running weir and their keys. */
#include "cli/commands.h"
#include "cli/manage.h"

const struct flag user_add_flags[] = {
    {"id", FLAG_TEXT, "ID", NULL, "What owns buckets and stands in ACLs; default: random."},
    {"display-name", FLAG_TEXT, "NAME", NULL, "The name that S3 shows."},
    {"email", FLAG_TEXT, "ADDRESS", NULL, "An e-mail address, for grants by address."},
    {"admin", FLAG_SWITCH, NULL, NULL, "May use every bucket."},
    {"access-key", FLAG_TEXT, "KEY", NULL, "The access key; default: a new one."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The secret key that goes with --access-key."},
    REMOTE_FLAGS,
    {0},
};

const struct flag user_key_flags[] = {
    {"access-key", FLAG_TEXT, "KEY", NULL, "The access key; default: a new one."},
    {"secret-key", FLAG_TEXT, "SECRET", NULL, "The secret key that goes with --access-key."},
    {"remove", FLAG_TEXT, "KEY", NULL, "Remove this access key instead."},
    REMOTE_FLAGS,
    {0},
};

static const struct output_column user_columns[] = {{"name"},  {"id"},    {"display_name"},
                                                    {"email"}, {"admin"}, {"keys"}};
static const struct output_column made_columns[] = {
    {"name"}, {"id"}, {"access_key"}, {"secret_key"}};
static const struct output_column key_columns[] = {{"access_key"}, {"secret_key"}};

static int check_keys(const struct invocation *inv, struct err *err)
{
    if (!invocation_flag(inv, "access-key") != !invocation_flag(inv, "secret-key"))
        return err_set(err, ERR_INVALID, "--access-key and --secret-key go together");
    return 0;
}

static int add(struct remote *r, const struct invocation *inv, struct output *table,
               struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *answer = NULL;
    int code = check_keys(inv, err);

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    json_out_member_str(&w, "name", str_z(inv->args.items[0]));
    manage_flag(&w, inv, "id", "id");
    manage_flag(&w, inv, "display-name", "display_name");
    manage_flag(&w, inv, "email", "email");
    json_out_member_bool(&w, "admin", invocation_flag(inv, "admin") != NULL);
    manage_flag(&w, inv, "access-key", "access_key");
    manage_flag(&w, inv, "secret-key", "secret_key");
    json_out_close(&w, '}');
    if (code == 0)
        code = remote_send(r, &answer, "POST", "/api/v1/users", body.p, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

static int list(struct remote *r, const struct invocation *inv, struct output *table,
                struct err *err)
{
    json_t *answer = NULL, *user;
    size_t i;
    int code = remote_send(r, &answer, "GET", "/api/v1/users", NULL, err);

    (void)inv;
    if (code == 0)
        json_array_foreach(json_object_get(answer, "users"), i, user) manage_row(table, user);
    json_decref(answer);
    return code;
}

static int remove_user(struct remote *r, const struct invocation *inv, struct output *table,
                       struct err *err)
{
    (void)table;
    return remote_send(r, NULL, "DELETE", manage_path(r, "/api/v1/users/", inv->args.items[0], ""),
                       NULL, err);
}

static int remove_key(struct remote *r, const struct invocation *inv, struct output *table,
                      struct err *err)
{
    const char *before = manage_path(r, "/api/v1/users/", inv->args.items[0], "/keys/");

    (void)table;
    return remote_send(r, NULL, "DELETE",
                       manage_path(r, before, invocation_flag(inv, "remove"), ""), NULL, err);
}

static int add_key(struct remote *r, const struct invocation *inv, struct output *table,
                   struct err *err)
{
    struct buf body = {0};
    struct json_out w;
    json_t *answer = NULL;
    int code = check_keys(inv, err);

    json_out_init(&w, &body);
    json_out_open(&w, '{');
    manage_flag(&w, inv, "access-key", "access_key");
    manage_flag(&w, inv, "secret-key", "secret_key");
    json_out_close(&w, '}');
    if (code == 0)
        code =
            remote_send(r, &answer, "POST",
                        manage_path(r, "/api/v1/users/", inv->args.items[0], "/keys"), body.p, err);
    if (code == 0)
        manage_row(table, answer);
    json_decref(answer);
    secure_zero(body.p, body.cap);
    buf_release(&body);
    return code;
}

int command_user_add(struct invocation *inv)
{
    return manage(inv, made_columns, ARRAY_SIZE(made_columns), add);
}

int command_user_list(struct invocation *inv)
{
    return manage(inv, user_columns, ARRAY_SIZE(user_columns), list);
}

int command_user_remove(struct invocation *inv)
{
    return manage(inv, NULL, 0, remove_user);
}

int command_user_key(struct invocation *inv)
{
    if (invocation_flag(inv, "remove"))
        return manage(inv, NULL, 0, remove_key);
    return manage(inv, key_columns, ARRAY_SIZE(key_columns), add_key);
}
