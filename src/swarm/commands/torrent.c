/* The command `weir torrent`: makes, shows and removes torrents of objects, through the API of a
 * running weir. */
#include "swarm/room.h"
#include "command/manage.h"
#include "os/file.h"
#include "http/wire.h"

static const char *const kinds[] = {"1", "2", "hybrid", NULL};

#define FILE_FLAGS                                                                                 \
    {"v", FLAG_CHOICES, "VERSION", kinds, "The torrent's version: 1 (default), 2 or hybrid."},     \
        {"passkey", FLAG_TEXT, "PASSKEY", NULL,                                                    \
         "Put this user's passkey into the tracker's addresses."},                                 \
    {                                                                                              \
        "out", FLAG_FILE, "FILE", NULL, "Also write the torrent to this file."                     \
    }

static const struct flag torrent_create_flags[] = {
    {"version-id", FLAG_TEXT, "ID", NULL, "The object's version; default: the current one."},
    FILE_FLAGS,
    CLIENT_FLAGS,
    {0},
};
static const struct flag torrent_show_flags[] = {FILE_FLAGS, CLIENT_FLAGS, {0}};

static const struct output_column list_columns[] = {{"id"},    {"size", .number = true},
                                                    {"state"}, {"percent", .number = true},
                                                    {"made"},  {"info_hashes"}};
static const struct output_column show_columns[] = {{"id"},
                                                    {"name"},
                                                    {"size", .number = true},
                                                    {"piece_length", .number = true},
                                                    {"state"},
                                                    {"percent", .number = true},
                                                    {"v1"},
                                                    {"v2"},
                                                    {"web_seed"},
                                                    {"magnet"}};

static int torrent_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    (void)err;
    json_out_member_str(w, "bucket", str_z(inv->args.items[0]));
    json_out_member_str(w, "key", str_z(inv->args.items[1]));
    manage_flag(w, inv, "version-id", "version");
    manage_flag(w, inv, "v", "v");
    manage_flag(w, inv, "passkey", "passkey");
    return 0;
}

/* Makes the path "/api/v1/torrents/<id><rest>?v=...&passkey=...". */
static const char *torrent_path(struct api_client *r, const struct invocation *inv, const char *id,
                                const char *rest)
{
    struct buf path = BUF_INIT(64 * KIB);

    buf_append_z(&path, manage_path(r, "/api/v1/torrents/", id, rest));
    manage_query(&path, "v", invocation_flag(inv, "v"));
    manage_query(&path, "passkey", invocation_flag(inv, "passkey"));
    const char *copy = arena_z(&r->arena, buf_str(&path));
    buf_release(&path);
    return copy;
}

/* Downloads the torrent file and writes it to the path that --out names. Does nothing without
 * --out. */
static int torrent_write_file(struct api_client *r, const struct invocation *inv, const json_t *row,
                              struct err *err)
{
    struct str id = json_get_str(row, "id", STR_EMPTY);
    const char *out = invocation_flag(inv, "out");
    struct client_response response;

    if (!out)
        return 0;
    if (!str_eq(json_get_str(row, "state", STR_EMPTY), STR("ready")))
        return err_set(err, ERR_BUSY, "the object is still being hashed; %s was not written", out);
    int code = api_client_call(r, torrent_path(r, inv, arena_z(&r->arena, id), "/file"), NULL,
                               &response, err);
    if (code == 0 && response.status / 100 != 2)
        code = api_client_error(r, &response, err);
    return code < 0 ? code : file_write_durable(out, response.body, 0644, err);
}

/* Sends the call, shows the torrent that the answer describes, and with --out writes its torrent
 * file. */
static int torrent_shown(struct api_client *r, const struct invocation *inv, struct output *table,
                         const struct manage_call *call, struct err *err)
{
    json_t *row = NULL;
    int code = manage_send(r, inv, call, &row, err);

    if (code == 0) {
        manage_row(table, row);
        code = torrent_write_file(r, inv, row, err);
    }
    json_decref(row);
    return code;
}

static int torrent_create_run(struct api_client *r, const struct invocation *inv,
                              struct output *table, struct err *err)
{
    static const struct manage_call call = {"POST", "/api/v1/torrents", .fill = torrent_fill};

    return torrent_shown(r, inv, table, &call, err);
}

static int torrent_show_run(struct api_client *r, const struct invocation *inv,
                            struct output *table, struct err *err)
{
    struct manage_call call = {"GET", torrent_path(r, inv, inv->args.items[0], "")};

    return torrent_shown(r, inv, table, &call, err);
}

static const struct manage_call create_call = {MANAGE_COLUMNS(show_columns),
                                               .run = torrent_create_run};
static const struct manage_call show_call = {MANAGE_COLUMNS(show_columns), .run = torrent_show_run};
static const struct manage_call list_call = {"GET", "/api/v1/torrents?limit=1000",
                                             MANAGE_COLUMNS(list_columns), .rows = "torrents",
                                             .pages = true};
static const struct manage_call remove_call = {"DELETE", "/api/v1/torrents/{0}"};

const struct command torrent_commands[] = {
    {.name = "torrent create",
     .arguments = "BUCKET KEY",
     .min_args = 2,
     .max_args = 2,
     .flags = torrent_create_flags,
     .configured = true,
     .summary = "Make a torrent of an object",
     .help = "Hashes the object, unless that was done before, and shows its info hash and "
             "magnet link. The torrent names the tracker of this weir, and as a web seed the "
             "object's own address, which clients can use when everybody may read the object. "
             "A large object is hashed in the background: the state says how far it is.",
     .examples = "weir torrent create datasets 2026/genomes.tar --out genomes.torrent\n"
                 "weir torrent create datasets 2026/genomes.tar --v hybrid --json",
     .call = &create_call},
    {.name = "torrent show",
     .arguments = "TORRENT",
     .min_args = 1,
     .max_args = 1,
     .flags = torrent_show_flags,
     .configured = true,
     .summary = "Show a torrent of an object",
     .help = "Shows the torrent with its magnet link. TORRENT is an info hash, or an id as "
             "`weir torrent list` shows it.",
     .examples =
         "weir torrent show 568de0292643e7f60455f6174d7c36ad88caccd8\n"
         "weir torrent show local:datasets:2026/genomes.tar:null --v 2 --out genomes.torrent",
     .call = &show_call},
    {.name = "torrent list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the torrents of objects",
     .help = "Lists the object versions that have torrents, with their info hashes, and those "
             "that are being hashed, with how far they are.",
     .examples = "weir torrent list",
     .call = &list_call},
    {.name = "torrent remove",
     .arguments = "TORRENT",
     .min_args = 1,
     .max_args = 1,
     .flags = client_flags,
     .configured = true,
     .summary = "Forget a torrent of an object",
     .help = "Forgets the hashes of the object version and takes its torrents off the tracker."
             " The object stays. The next request for a torrent of the object makes it anew.",
     .examples = "weir torrent remove 568de0292643e7f60455f6174d7c36ad88caccd8",
     .call = &remove_call},
    {0},
};
