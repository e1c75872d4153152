/* Calls for administrators: users and their access keys. */
#include "lake/rest/web.h"

#include <stdlib.h>

static rest_fn account_page, account_make, account_show, account_drop, key_page, key_make, key_show,
    key_drop;

static const struct rest_field user_path[] = {{"userId", "The user's name."}, {0}};
static const struct rest_field key_path[] = {
    {"userId", "The user's name."}, {"accessKeyId", "The access key."}, {0}};
static const struct rest_field key_fields[] = {
    {"access_key_id", "The access key."},
    {"creation_date", "Always 0: weir does not keep it.", REST_INTEGER},
    {0},
};

static const struct rest_row user_rows[] = {
    {HTTP_GET, "/api/v1/auth/users", REST_USER, "All users, for administrators.", account_page,
     WEB_OP("listUsers"), .query = REST_FIELDS(WEB_PREFIX), .list = "results",
     .items = web_user_fields},
    {HTTP_POST, "/api/v1/auth/users", REST_USER,
     "Adds a user. The user has a key, but the answer does not show it: make another one.",
     account_make, WEB_OP("createUser"), .status = 201,
     .body = REST_FIELDS({"id", "The user's name.", .required = true},
                         {"invite_user", "Refused when true.", REST_BOOLEAN}),
     .answer = web_user_fields},
    {HTTP_GET, "/api/v1/auth/users/{userId}", REST_USER, "One user.", account_show,
     WEB_OP("getUser"), .in_path = user_path, .answer = web_user_fields,
     .missing = "user not found"},
    {HTTP_DELETE, "/api/v1/auth/users/{userId}", REST_USER, "Removes a user.", account_drop,
     WEB_OP("deleteUser"), .in_path = user_path, .status = 204, .missing = "user not found"},
    {HTTP_GET, "/api/v1/auth/users/{userId}/credentials", REST_USER, "The user's access keys.",
     key_page, WEB_OP("listUserCredentials"), .in_path = user_path,
     .query = REST_FIELDS(WEB_PREFIX), .list = "results", .items = key_fields,
     .missing = "user not found"},
    {HTTP_POST, "/api/v1/auth/users/{userId}/credentials", REST_USER,
     "Makes an access key. Only this answer shows its secret.", key_make,
     WEB_OP("createCredentials"), .in_path = user_path, .status = 201,
     .answer =
         REST_FIELDS({"access_key_id", "The access key."},
                     {"secret_access_key", "The secret key.", .secret = true},
                     {"creation_date", "When it was made, in seconds since 1970.", REST_INTEGER}),
     .missing = "user not found"},
    {HTTP_GET, "/api/v1/auth/users/{userId}/credentials/{accessKeyId}", REST_USER,
     "One access key.", key_show, WEB_OP("getCredentials"), .in_path = key_path,
     .answer = key_fields, .missing = "credentials not found"},
    {HTTP_DELETE, "/api/v1/auth/users/{userId}/credentials/{accessKeyId}", REST_USER,
     "Removes an access key.", key_drop, WEB_OP("deleteCredentials"), .in_path = key_path,
     .status = 204, .missing = "credentials not found"},
};
const struct rest_table web_user_rows = WEB_ROWS(user_rows);

static struct users *users_of(const struct rest_call *c)
{
    return web_of(c)->services->users;
}

static int user_name_order(const void *a, const void *b)
{
    const struct user *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

static int account_page(struct rest_call *c, struct err *err)
{
    struct str prefix = rest_text(c, "prefix");
    struct user *users = NULL;
    size_t count = 0;
    int code = web_need_admin(c, err);

    if (code == 0)
        code = users_list(users_of(c), c->arena, &users, &count, err);
    if (code < 0)
        return code;
    if (count)
        qsort(users, count, sizeof(*users), user_name_order);
    for (size_t i = 0; i < count && !rest_full(c); i++)
        if (str_starts(users[i].name, prefix) && rest_item(c, users[i].name)) {
            web_write_user(c->w, &users[i]);
            rest_item_end(c);
        }
    return 0;
}

static int account_make(struct rest_call *c, struct err *err)
{
    struct user wanted = {.name = rest_text(c, "id")}, made;
    int code = web_need_admin(c, err);

    if (code == 0 && rest_bool(c, "invite_user"))
        code = err_set(err, ERR_UNSUPPORTED, "users cannot be invited by email");
    if (code == 0)
        code = users_add(users_of(c), c->arena, &wanted, &made, err);
    if (code == 0)
        web_write_user(c->w, &made);
    return code;
}

/* Finds the user that the call's path names. Administrators may name any user, other callers only
 * themselves. */
static int user_of_path(struct rest_call *c, struct user *out, struct err *err)
{
    struct str name = rest_text(c, "userId");
    int code = str_eq(name, web_user(c)->name) ? 0 : web_need_admin(c, err);

    return code == 0 ? users_by_name(users_of(c), c->arena, name, out, err) : code;
}

static int account_show(struct rest_call *c, struct err *err)
{
    struct user user;
    int code = user_of_path(c, &user, err);

    if (code == 0)
        web_write_user(c->w, &user);
    return code;
}

static int account_drop(struct rest_call *c, struct err *err)
{
    int code = web_need_admin(c, err);

    return code == 0 ? users_remove(users_of(c), rest_text(c, "userId"), err) : code;
}

static void key_write(struct json_out *w, struct str access)
{
    json_out_member_str(w, "access_key_id", access);
    json_out_member_i64(w, "creation_date", 0);
}

static int key_order(const void *a, const void *b)
{
    const struct str *x = a, *y = b;

    return str_cmp(*x, *y);
}

static int key_page(struct rest_call *c, struct err *err)
{
    struct str prefix = rest_text(c, "prefix");
    struct user user = {0};
    int code = user_of_path(c, &user, err);

    if (code < 0)
        return code;
    struct str *names = arena_array(c->arena, user.key_count + 1, sizeof(*names));
    if (!names)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < user.key_count; i++)
        names[i] = user.keys[i].access;
    qsort(names, user.key_count, sizeof(*names), key_order);
    for (size_t i = 0; i < user.key_count; i++)
        if (str_starts(names[i], prefix) && rest_item(c, names[i])) {
            key_write(c->w, names[i]);
            rest_item_end(c);
        }
    return 0;
}

static int key_make(struct rest_call *c, struct err *err)
{
    struct user_key key = {0};
    struct user user;
    int code = user_of_path(c, &user, err);

    if (code == 0)
        code = users_add_key(users_of(c), c->arena, user.name, NULL, &key, err);
    if (code < 0)
        return code;
    json_out_member_str(c->w, "access_key_id", key.access);
    json_out_member_str(c->w, "secret_access_key", key.secret);
    json_out_member_i64(c->w, "creation_date", clock_wall_ms() / MS_PER_S);
    return 0;
}

/* Finds the user that the call's path names. The access key in the path must belong to that
 * user. */
static int key_of_path(struct rest_call *c, struct user *out, struct err *err)
{
    int code = user_of_path(c, out, err);

    if (code < 0)
        return code;
    for (size_t i = 0; i < out->key_count; i++)
        if (str_eq(out->keys[i].access, rest_text(c, "accessKeyId")))
            return 0;
    return err_code(err, ERR_NOT_FOUND);
}

static int key_show(struct rest_call *c, struct err *err)
{
    struct user user = {0};
    int code = key_of_path(c, &user, err);

    if (code == 0)
        key_write(c->w, rest_text(c, "accessKeyId"));
    return code;
}

static int key_drop(struct rest_call *c, struct err *err)
{
    struct user user = {0};
    int code = key_of_path(c, &user, err);

    return code == 0 ? users_remove_key(users_of(c), user.name, rest_text(c, "accessKeyId"), err)
                     : code;
}
