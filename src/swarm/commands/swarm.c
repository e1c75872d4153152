/* The command `weir swarm`: users, clients, torrents and the feed of a running tracker. */
#include "swarm/room.h"
#include "command/manage.h"

static const struct flag swarm_user_add_flags[] = {
    {"id", FLAG_TEXT, "ID", NULL, "The number of the user; default: the next free one."},
    {"passkey", FLAG_TEXT, "KEY", NULL, "32 letters and digits; default: a new one."},
    {"slots", FLAG_TEXT, "N", NULL,
     "Torrents that may be downloaded at once; default: any number."},
    {"up", FLAG_TEXT, "FACTOR", NULL, "Uploaded bytes are credited times FACTOR; default: 1."},
    {"down", FLAG_TEXT, "FACTOR", NULL, "Downloaded bytes are charged times FACTOR; default: 1."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag swarm_user_list_flags[] = {
    {"show-passkeys", FLAG_SWITCH, NULL, NULL, "Show the passkeys, which are secrets."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag swarm_torrent_add_flags[] = {
    {"up", FLAG_TEXT, "FACTOR", NULL, "Uploaded bytes are credited times FACTOR; default: 1."},
    {"down", FLAG_TEXT, "FACTOR", NULL,
     "Downloaded bytes are charged times FACTOR, 0 for freeleech; default: 1."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag swarm_feed_read_flags[] = {
    {"max", FLAG_TEXT, "N", NULL, "Show at most N records; default: 1000."},
    CLIENT_FLAGS,
    {0},
};

/* --- request bodies --- */

struct number_flag {
    const char *flag, *name;
};

/* Writes those of `flags` that the user gave as members of the JSON body. Their values must be
 * numbers. */
static int swarm_fill_numbers(struct json_out *w, const struct invocation *inv,
                              const struct number_flag *flags, struct err *err)
{
    for (; flags->flag; flags++) {
        const char *text = invocation_flag(inv, flags->flag);
        json_t *value;
        if (!text)
            continue;
        value = json_loads(text, JSON_DECODE_ANY, NULL);
        bool number = json_is_number(value);
        json_decref(value);
        if (!number)
            return err_set(err, ERR_INVALID, "--%s takes a number, not '%s'", flags->flag, text);
        json_out_key(w, flags->name);
        json_out_raw(w, str_z(text));
    }
    return 0;
}

static int swarm_fill_user(struct json_out *w, const struct invocation *inv, struct err *err)
{
    static const struct number_flag numbers[] = {{"id", "id"},
                                                 {"slots", "slots"},
                                                 {"up", "up_multiplier"},
                                                 {"down", "down_multiplier"},
                                                 {NULL, NULL}};

    manage_flag(w, inv, "passkey", "passkey");
    return swarm_fill_numbers(w, inv, numbers, err);
}

static int swarm_fill_client(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    json_out_member_str(w, "client", str_z(inv->args.items[0]));
    return 0;
}

static int swarm_fill_torrent(struct json_out *w, const struct invocation *inv, struct err *err)
{
    static const struct number_flag numbers[] = {
        {"up", "up_multiplier"}, {"down", "down_multiplier"}, {NULL, NULL}};

    json_out_member_str(w, "torrent", str_z(inv->args.items[0]));
    return swarm_fill_numbers(w, inv, numbers, err);
}

static int swarm_fill_consumer(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    json_out_member_str(w, "name", str_z(inv->args.items[0]));
    return 0;
}

static int swarm_fill_acknowledged(struct json_out *w, const struct invocation *inv,
                                   struct err *err)
{
    uint64_t number;

    if (str_u64(str_z(inv->args.items[1]), &number) < 0)
        return err_set(err, ERR_INVALID, "'%s' is not the number of a record", inv->args.items[1]);
    json_out_member_u64(w, "number", number);
    return 0;
}

static int swarm_judge(const json_t *answer, struct err *err)
{
    int64_t count = json_get_i64(answer, "count", 0);

    return count ? err_set(err, ERR_CORRUPT, "%jd findings", (intmax_t)count) : 0;
}

/* --- output columns --- */

#define NUMBER(name)                                                                               \
    {                                                                                              \
        name, .number = true                                                                       \
    }

static const struct output_column user_columns[] = {
    NUMBER("id"),       NUMBER("slots"),         NUMBER("slots_used"),
    NUMBER("snatches"), NUMBER("up_multiplier"), NUMBER("down_multiplier")};
static const struct output_column secret_columns[] = {NUMBER("id"),
                                                      {"passkey"},
                                                      NUMBER("slots"),
                                                      NUMBER("slots_used"),
                                                      NUMBER("snatches"),
                                                      NUMBER("up_multiplier"),
                                                      NUMBER("down_multiplier")};
static const struct output_column client_columns[] = {{"client"}};
static const struct output_column torrent_columns[] = {{"info_hash"},
                                                       NUMBER("id"),
                                                       {"active"},
                                                       NUMBER("seeders"),
                                                       NUMBER("leechers"),
                                                       NUMBER("snatches"),
                                                       NUMBER("up_multiplier"),
                                                       NUMBER("down_multiplier"),
                                                       {"last_action"}};
static const struct output_column finding_columns[] = {{"invariant"}, {"key"}};
static const struct output_column consumer_columns[] = {
    {"name"}, NUMBER("acknowledged"), NUMBER("waiting")};
static const struct output_column name_columns[] = {{"name"}};
static const struct output_column record_columns[] = {NUMBER("number"),
                                                      NUMBER("user"),
                                                      NUMBER("torrent"),
                                                      {"at"},
                                                      {"created"},
                                                      {"snatched"},
                                                      {"stopped"},
                                                      {"seeder"},
                                                      NUMBER("left"),
                                                      {"peer_id"},
                                                      NUMBER("raw_uploaded"),
                                                      NUMBER("raw_downloaded"),
                                                      NUMBER("uploaded"),
                                                      NUMBER("downloaded")};
static const struct output_column stat_columns[] = {{"name"}, NUMBER("value")};

static int swarm_stats_run(struct api_client *r, const struct invocation *inv, struct output *table,
                           struct err *err)
{
    json_t *answer = NULL;
    const char *name;
    json_t *value;
    int code = api_client_send(r, "GET", "/api/v1/swarm/stats", NULL, &answer, err);

    (void)inv;
    if (code < 0)
        return code;
    json_object_foreach(answer, name, value)
    {
        if (!json_is_integer(value))
            continue;
        output_cell(table, str_z(name));
        output_cellf(table, "%jd", (intmax_t)json_integer_value(value));
    }
    json_object_foreach(json_object_get(answer, "failures"), name, value)
    {
        output_cellf(table, "failure: %s", name);
        output_cellf(table, "%jd", (intmax_t)json_integer_value(value));
    }
    json_decref(answer);
    return 0;
}

/* --- the calls --- */

static const struct manage_call add_user = {
    "POST", "/api/v1/swarm/users", MANAGE_COLUMNS(secret_columns), .fill = swarm_fill_user};
static const struct manage_call list_users = {
    "GET", "/api/v1/swarm/users", MANAGE_COLUMNS(user_columns), .rows = "users", .pages = true};
static const struct manage_call list_secrets = {"GET", "/api/v1/swarm/users?passkeys=true",
                                                MANAGE_COLUMNS(secret_columns), .rows = "users",
                                                .pages = true};
static const struct manage_call remove_user = {"DELETE", "/api/v1/swarm/users/{0}"};
static const struct manage_call add_client = {
    "POST", "/api/v1/swarm/clients", MANAGE_COLUMNS(client_columns), .fill = swarm_fill_client};
static const struct manage_call list_clients = {"GET", "/api/v1/swarm/clients",
                                                MANAGE_COLUMNS(client_columns), .rows = "clients",
                                                .pages = true};
static const struct manage_call remove_client = {"DELETE", "/api/v1/swarm/clients/{0}"};
static const struct manage_call add_torrent = {
    "POST", "/api/v1/swarm/torrents", MANAGE_COLUMNS(torrent_columns), .fill = swarm_fill_torrent};
static const struct manage_call list_torrents = {"GET", "/api/v1/swarm/torrents",
                                                 MANAGE_COLUMNS(torrent_columns),
                                                 .rows = "torrents", .pages = true};
static const struct manage_call remove_torrent = {"DELETE", "/api/v1/swarm/torrents/{0}"};
static const struct manage_call stats = {MANAGE_COLUMNS(stat_columns), .run = swarm_stats_run};
static const struct manage_call check = {"POST", "/api/v1/swarm/check",
                                         MANAGE_COLUMNS(finding_columns), .rows = "findings",
                                         .judge = swarm_judge};
static const struct manage_call add_consumer = {
    "POST", "/api/v1/swarm/feed", MANAGE_COLUMNS(name_columns), .fill = swarm_fill_consumer};
static const struct manage_call list_consumers = {"GET", "/api/v1/swarm/feed",
                                                  MANAGE_COLUMNS(consumer_columns),
                                                  .rows = "consumers", .pages = true};
static const struct manage_call remove_consumer = {"DELETE", "/api/v1/swarm/feed/{0}"};
static const struct manage_call read_feed = {"GET", "/api/v1/swarm/feed/{0}",
                                             MANAGE_COLUMNS(record_columns), .rows = "records"};
static const struct manage_call read_some = {"GET", "/api/v1/swarm/feed/{0}?limit={max}",
                                             MANAGE_COLUMNS(record_columns), .rows = "records"};
static const struct manage_call acknowledge = {"POST", "/api/v1/swarm/feed/{0}/acknowledge",
                                               .fill = swarm_fill_acknowledged};

/* --- the commands --- */

static int command_swarm_user_list(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "show-passkeys") ? &list_secrets : &list_users);
}

static int command_swarm_feed_read(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "max") ? &read_some : &read_feed);
}

const struct command swarm_commands[] = {
    {.name = "swarm user add",
     .flags = swarm_user_add_flags,
     .configured = true,
     .summary = "Add a user of the private tracker",
     .help = "Adds a user with a passkey and shows the passkey. Later only `weir swarm user list "
             "--show-passkeys` shows it. With the passkey of a user who is there, the command "
             "changes that user's slots and factors.",
     .examples = "weir swarm user add\nweir swarm user add --slots 5 --down 0.5",
     .call = &add_user},
    {.name = "swarm user list",
     .flags = swarm_user_list_flags,
     .configured = true,
     .summary = "List the users of the private tracker",
     .help = "Lists the users, without their passkeys.",
     .examples = "weir swarm user list",
     .run = command_swarm_user_list},
    {.name = "swarm user remove",
     .arguments = "ID",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Remove a user of the private tracker",
     .help = "Removes the user, by its id or its passkey, and all of its peers.",
     .examples = "weir swarm user remove 7",
     .call = &remove_user},
    {.name = "swarm client add",
     .arguments = "CLIENT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Approve clients by the beginning of their peer id",
     .help = "Adds CLIENT, the beginning of a peer id, to the list of approved clients. As long as "
             "the list is empty, all clients are approved. In public mode the list is used "
             "only with tracker.approved_clients.",
     .examples = "weir swarm client add -- -TR3",
     .call = &add_client},
    {.name = "swarm client list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the approved clients",
     .help = "Lists the beginnings of peer ids that are approved.",
     .examples = "weir swarm client list",
     .call = &list_clients},
    {.name = "swarm client remove",
     .arguments = "CLIENT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "No longer approve clients",
     .help = "Takes CLIENT, the beginning of a peer id, off the list of approved clients.",
     .examples = "weir swarm client remove -- -TR3",
     .call = &remove_client},
    {.name = "swarm torrent add",
     .arguments = "TORRENT",
     .min_args = 1,
     .max_args = 1,
     .flags = swarm_torrent_add_flags,
     .configured = true,
     .summary = "Track a torrent",
     .help = "Makes the tracker track a torrent. TORRENT is an info hash (40 hexadecimal digits, "
             "or 64 for version 2) or a magnet link. For a torrent that is tracked already, the "
             "command changes the factors.",
     .examples =
         "weir swarm torrent add 0123456789abcdef0123456789abcdef01234567\nweir swarm torrent add "
         "'magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567' --down 0",
     .call = &add_torrent},
    {.name = "swarm torrent list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the torrents that were added",
     .help = "Lists the torrents with the numbers of seeders and downloaders.",
     .examples = "weir swarm torrent list",
     .call = &list_torrents},
    {.name = "swarm torrent remove",
     .arguments = "TORRENT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "No longer track a torrent",
     .help = "Removes the torrent and all of its peers. The torrent of an object is not handed out "
             "then, "
             "until \"weir torrent create\" or \"weir swarm torrent add\" brings it back.",
     .examples = "weir swarm torrent remove 0123456789abcdef0123456789abcdef01234567",
     .call = &remove_torrent},
    {.name = "swarm stats",
     .flags = client_flags,
     .configured = true,
     .summary = "Show the tracker in numbers",
     .help = "Shows the numbers of the tracker's page /stats.",
     .examples = "weir swarm stats",
     .call = &stats},
    {.name = "swarm check",
     .flags = client_flags,
     .configured = true,
     .summary = "Check that the tracker's data in the store are consistent",
     .help = "Reads everything that the tracker keeps in the store, and shows what contradicts the "
             "invariants of docs/swarm.md. The exit status is 1 when there are such findings.",
     .examples = "weir swarm check",
     .call = &check},
    {.name = "swarm feed add",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Add a consumer of the feed of deltas",
     .help =
         "Adds the consumer NAME to the feed. From then on each announce that the private tracker "
         "accepts becomes a record, which is kept until every consumer has acknowledged it.",
     .examples = "weir swarm feed add site",
     .call = &add_consumer},
    {.name = "swarm feed list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the consumers of the feed",
     .help = "Lists the consumers with the number of records that wait for each.",
     .examples = "weir swarm feed list",
     .call = &list_consumers},
    {.name = "swarm feed remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Remove a consumer of the feed",
     .help = "Removes the consumer, and the records that waited for this consumer alone.",
     .examples = "weir swarm feed remove site",
     .call = &remove_consumer},
    {.name = "swarm feed read",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .flags = swarm_feed_read_flags,
     .configured = true,
     .summary = "Show the records that a consumer has not acknowledged",
     .help = "Shows the oldest records that the consumer has not acknowledged. Reading changes "
             "nothing.",
     .examples = "weir swarm feed read site --max 100 --json",
     .run = command_swarm_feed_read},
    {.name = "swarm feed acknowledge",
     .arguments = "NAME NUMBER",
     .min_args = 2,
     .max_args = 2,
     .flags = client_flags,
     .configured = true,
     .summary = "Acknowledge records of the feed",
     .help = "Acknowledges all records up to NUMBER, which may then be removed.",
     .examples = "weir swarm feed acknowledge site 100",
     .call = &acknowledge},
    {0},
};
