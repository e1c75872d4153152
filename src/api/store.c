/* The coordination store: whether it is the known one, and what an administrator says of it. */
#include "api/api_int.h"
#include "base/clock.h"
#include "replica/store_keep.h"

static api_fn get_store, accept_store, restore_store;

API_ROUTE(api_get_store, get_store, 200, .waits = true)
API_ROUTE(api_post_store_accept, accept_store, 200, .takes_body = true)
API_ROUTE(api_post_store_restore, restore_store, 200, .takes_body = true)

static void write_store(struct json_out *w, struct api *api)
{
    struct installation_status s;
    struct config_copy copy;
    struct err why = {0};
    char time[CLOCK_ISO_LEN + 1] = "";

    installation_status(api->o.installation, &s);
    if (s.state != INSTALLATION_KNOWN)
        installation_why(api->o.installation, &why);
    if (store_keep_copy(api->store_keep, &copy, NULL) == 0)
        clock_iso(copy.time_ms, time);
    json_out_member_str(w, "state", str_z(installation_state_name(s.state)));
    json_out_member_str(w, "why", str_z(why.text));
    json_out_member_str(w, "installation", str_z(s.id));
    json_out_member_str(w, "found", str_z(s.found));
    json_out_member_u64(w, "round", s.round);
    json_out_member_bool(w, "comparing", s.back || s.unsure);
    json_out_member_u64(w, "config", s.config);
    json_out_member_str(w, "copied_at", str_z(time));
    json_out_member_u64(w, "copied_config", *time ? copy.count : 0);
}

/* One that cannot be reached is told of as it was last. */
static int get_store(struct api_call *c, struct err *err)
{
    (void)err;
    (void)!installation_check(c->api->o.installation, NULL);
    write_store(c->w, c->api);
    return 0;
}

static int accept_store(struct api_call *c, struct err *err)
{
    static const char *const strings[] = {"what", "installation", NULL};
    static const char *const names[] = {
        [ACCEPT_EMPTY] = "empty", [ACCEPT_OTHER] = "other", [ACCEPT_OLDER] = "older"};
    struct str what = json_get_str(c->body, "what", STR_EMPTY);
    struct str id = json_get_str(c->body, "installation", STR_EMPTY);
    int code = api_check_strings(c->body, strings, err);

    for (size_t i = 0; code == 0 && i < ARRAY_SIZE(names); i++) {
        if (!str_eq(what, str_z(names[i])))
            continue;
        code = installation_accept(c->api->o.installation, (enum installation_accepted)i, id, err);
        if (code < 0)
            return code;
        log_warn(http_request_log(c->req), "store.accepted", log_s("what", what));
        write_store(c->w, c->api);
        return 0;
    }
    return code < 0 ? code
                    : err_set(err, ERR_INVALID,
                              "what the store is: empty, older, or other with an "
                              "installation");
}

static int restore_store(struct api_call *c, struct err *err)
{
    static const char *const strings[] = {"from", NULL};
    struct str from = json_get_str(c->body, "from", STR_EMPTY);
    int code = api_check_strings(c->body, strings, err);

    if (code == 0 && from.len && from.p[0] != '/')
        code = err_set(err, ERR_INVALID, "the file needs an absolute path, on the server");
    if (code == 0)
        code = store_keep_restore(c->api->store_keep,
                                  from.len ? arena_z(http_request_arena(c->req), from) : NULL,
                                  json_get_bool(c->body, "replace", false), err);
    if (code == 0)
        write_store(c->w, c->api);
    return code;
}
