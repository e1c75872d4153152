/* Shows whether the coordination store is the one that weir knows. An administrator may accept
 * another store here, or restore the configuration. */
#include "replica/rest/rest.h"
#include "replica/store_keep.h"

static rest_fn store_show, store_accept, store_restore;

static const char *const accept_names[] = {
    [ACCEPT_EMPTY] = "empty", [ACCEPT_OTHER] = "other", [ACCEPT_OLDER] = "older", NULL};

static const struct rest_field store_answer[] = {
    {"state", "\"known\", or what is wrong with the store."},
    {"why", "What is wrong, as a sentence; empty: nothing."},
    {"installation", "The id of the installation that this weir knows."},
    {"found", "The id that the store has."},
    {"round", "How often the store was found to be older than it had been.", REST_INTEGER},
    {"comparing", "Are replications being compared, since the store may lack changes?",
     REST_BOOLEAN},
    {"config", "Count of changes of the configuration in the store.", REST_INTEGER},
    {"copied_at", "When the configuration was last copied to the data folder.", REST_TIME},
    {"copied_config",
     "Count of changes of the configuration when that copy was made; of two copies the higher "
     "count is newer.",
     REST_INTEGER},
    {0},
};

static const struct rest_row store_rows[] = {
    {HTTP_GET, "/api/v1/store", REST_ADMIN,
     "Show whether the coordination store is the one that this weir knows, and the copy of the "
     "configuration that weir keeps.",
     store_show, .storeless = true, .answer = store_answer},
    {HTTP_POST, "/api/v1/store/accept", REST_ADMIN, "Go on with the store as it is.", store_accept,
     .storeless = true,
     .body = REST_FIELDS({"what", "What the store is, compared with the one that weir knows.",
                          .required = true, .choices = accept_names},
                         {"installation", "With \"other\": the id that the store has."}),
     .answer = store_answer},
    {HTTP_POST, "/api/v1/store/restore", REST_ADMIN,
     "Put the configuration back from the copy in the data folder, or from a file.", store_restore,
     .storeless = true,
     .body =
         REST_FIELDS({"from", "Absolute path of a file on the server; left out: the copy in the "
                              "data folder."},
                     {"replace", "Replace a configuration that the store has?", REST_BOOLEAN}),
     .answer = store_answer},
};
const struct rest_table replica_store_routes = {REST_ROWS(store_rows)};

static void store_write(struct json_out *w, const struct replica_room *room)
{
    struct installation_status s;
    struct config_copy copy = {0};
    struct err why = {0};

    installation_status(room->services->installation, &s);
    if (s.state != INSTALLATION_KNOWN)
        installation_why(room->services->installation, &why);
    bool copied = store_keep_copy(room->store_keep, &copy, NULL) == 0;
    json_out_member_str(w, "state", str_z(installation_state_name(s.state)));
    json_out_member_str(w, "why", str_z(why.text));
    json_out_member_str(w, "installation", str_z(s.id));
    json_out_member_str(w, "found", str_z(s.found));
    json_out_member_u64(w, "round", s.round);
    json_out_member_bool(w, "comparing", s.back || s.unsure);
    json_out_member_u64(w, "config", s.config);
    rest_time(w, "copied_at", copied ? copy.time_ms : 0);
    json_out_member_u64(w, "copied_config", copied ? copy.count : 0);
}

/* Shows the store's state. If the store cannot be reached, shows its last known state. */
static int store_show(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;

    (void)err;
    (void)!installation_check(room->services->installation, NULL);
    store_write(c->w, room);
    return 0;
}

static enum installation_accepted accepted_of(struct str what)
{
    size_t i = 0;

    while (!str_eq(what, str_z(accept_names[i])))
        i++;
    return (enum installation_accepted)i;
}

static int store_accept(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct str what = rest_text(c, "what");
    int code = installation_accept(room->services->installation, accepted_of(what),
                                   rest_text(c, "installation"), err);

    if (code < 0)
        return code;
    log_warn(http_request_log(c->req), "store.accepted", log_s("what", what));
    store_write(c->w, room);
    return 0;
}

static int store_restore(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    struct str from = rest_text(c, "from");

    if (from.len && from.p[0] != '/')
        return err_set(err, ERR_INVALID, "from must be an absolute path of a file on the server");
    int code = store_keep_restore(room->store_keep, from.len ? rest_text_z(c, "from") : NULL,
                                  rest_bool(c, "replace"), err);
    if (code == 0)
        store_write(c->w, room);
    return code;
}
