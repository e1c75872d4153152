/* Shows whether the coordination store is the one that weir knows. An administrator may accept
 * another store here, or restore the configuration. */
#include "replica/rest/rest.h"
#include "replica/store_keep.h"

static rest_fn store_show, store_accept, store_restore;

static const char *const accept_names[] = {
    [ACCEPT_EMPTY] = "empty", [ACCEPT_OTHER] = "other", [ACCEPT_OLDER] = "older", NULL};

struct store_view {
    const char *state, *why, *installation, *found;
    uint64_t round, config, copied_config;
    bool comparing;
    int64_t copied_ms;
};

#define VIEW(member) REST_AT(struct store_view, member)

static const struct rest_field store_answer[] = {
    {"state", "\"known\", or what is wrong with the store.", VIEW(state)},
    {"why", "What is wrong, as a sentence; empty: nothing.", VIEW(why)},
    {"installation", "The id of the installation that this weir knows.", VIEW(installation)},
    {"found", "The id that the store has.", VIEW(found)},
    {"round", "How often the store was found to be older than it had been.", REST_INTEGER,
     VIEW(round)},
    {"comparing", "Are replications being compared, since the store may lack changes?",
     REST_BOOLEAN, VIEW(comparing)},
    {"config", "Count of changes of the configuration in the store.", REST_INTEGER, VIEW(config)},
    {"copied_at", "When the configuration was last copied to the data folder.", REST_TIME,
     VIEW(copied_ms)},
    {"copied_config",
     "Count of changes of the configuration when that copy was made; of two copies the higher "
     "count is newer.",
     REST_INTEGER, VIEW(copied_config)},
    {0},
};

struct accept_form {
    enum installation_accepted what;
    struct str installation;
};

struct restore_form {
    const char *from; /* NULL, or empty: the copy in the data folder */
    bool replace;
};

static const struct rest_row store_rows[] = {
    {HTTP_GET, "/api/v1/store", REST_ADMIN,
     "Show whether the coordination store is the one that this weir knows, and the copy of the "
     "configuration that weir keeps.",
     store_show, .storeless = true, .out = sizeof(struct store_view), .answer = store_answer},
    {HTTP_POST, "/api/v1/store/accept", REST_ADMIN, "Go on with the store as it is.", store_accept,
     .storeless = true, .in = sizeof(struct accept_form), .out = sizeof(struct store_view),
     .body =
         REST_FIELDS({"what", "What the store is, compared with the one that weir knows.",
                      .required = true, .choices = accept_names, REST_AT(struct accept_form, what)},
                     {"installation", "With \"other\": the id that the store has.",
                      REST_AT(struct accept_form, installation)}),
     .answer = store_answer},
    {HTTP_POST, "/api/v1/store/restore", REST_ADMIN,
     "Put the configuration back from the copy in the data folder, or from a file.", store_restore,
     .storeless = true, .in = sizeof(struct restore_form), .out = sizeof(struct store_view),
     .body = REST_FIELDS(
         {"from", "Absolute path of a file on the server; left out: the copy in the data folder.",
          REST_AT(struct restore_form, from)},
         {"replace", "Replace a configuration that the store has?", REST_BOOLEAN,
          REST_AT(struct restore_form, replace)}),
     .answer = store_answer},
};
const struct rest_table replica_store_routes = {REST_ROWS(store_rows)};

static int store_give(struct rest_call *c)
{
    const struct replica_room *room = c->ctx;
    struct installation_status s;
    struct config_copy copy = {0};
    struct err why = {0};

    installation_status(room->services->installation, &s);
    if (s.state != INSTALLATION_KNOWN)
        installation_why(room->services->installation, &why);
    bool copied = store_keep_copy(room->store_keep, &copy, NULL) == 0;
    struct store_view view = {
        .state = installation_state_name(s.state),
        .why = why.text,
        .installation = s.id,
        .found = s.found,
        .round = s.round,
        .comparing = s.back || s.unsure,
        .config = s.config,
        .copied_ms = copied ? copy.time_ms : 0,
        .copied_config = copied ? copy.count : 0,
    };
    return rest_give(c, &view);
}

/* Shows the store's state. If the store cannot be reached, shows its last known state. */
static int store_show(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;

    (void)err;
    (void)!installation_check(room->services->installation, NULL);
    return store_give(c);
}

static int store_accept(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    const struct accept_form *in = rest_in(c, struct accept_form);
    int code = installation_accept(room->services->installation, in->what, in->installation, err);

    if (code < 0)
        return code;
    log_warn(http_request_log(c->req), "store.accepted", log_z("what", accept_names[in->what]));
    return store_give(c);
}

static int store_restore(struct rest_call *c, struct err *err)
{
    const struct replica_room *room = c->ctx;
    const struct restore_form *in = rest_in(c, struct restore_form);
    const char *from = in->from && *in->from ? in->from : NULL;

    if (from && *from != '/')
        return err_set(err, ERR_INVALID, "from must be an absolute path of a file on the server");
    int code = store_keep_restore(room->store_keep, from, in->replace, err);
    return code < 0 ? code : store_give(c);
}
