/* The command `weir archive forge`: the forges that weir knows. */
#include "archive/room.h"

#include "archive/commands/tell.h"
#include "archive/forge.h"
#include "command/manage.h"

enum { TOKEN_TEXT_MAX = 64 * 1024 };

static const struct flag forge_add_flags[] = {
    {"kind", FLAG_CHOICE, "KIND", forge_kind_names, "The kind of forge; github.com needs none."},
    {"api", FLAG_TEXT, "URL", NULL, "Base URL of the API; default: that of the kind on HOST."},
    {"git", FLAG_TEXT, "URL", NULL, "Base URL of the repositories; default: https://HOST."},
    {"bucket", FLAG_TEXT, "BUCKET", NULL,
     "The bucket that holds the forge's accounts; default: the host."},
    {"token-file", FLAG_FILE, "FILE", NULL,
     "A file with a token on each line; - is the standard input."},
    {"wants", FLAG_TEXT, "OPTIONS", NULL,
     "What is saved beside the bundles, with commas between them: zip, wikis, gists, lfs, issues, "
     "pulls, releases; default: zip."},
    CLIENT_FLAGS,
    {0},
};

static const struct flag forge_remove_flags[] = {
    {"token", FLAG_TEXT, "ID", NULL, "Remove only the token with this id."},
    CLIENT_FLAGS,
    {0},
};

static const struct output_column forge_columns[] = {
    {"host"},   {"kind"},        {"api"},
    {"git"},    {"bucket"},      {"wants"},
    {"source"}, {"rests_until"}, {"tokens", .json = true}};

/* --- add --- */

static int forge_fill_tokens(struct json_out *w, const char *path, struct err *err)
{
    struct buf text = BUF_INIT(TOKEN_TEXT_MAX);
    int code = command_read_file(&text, path, err);
    struct str rest = buf_str(&text), token;
    size_t count = 0;

    if (code == 0) {
        json_out_key(w, "tokens");
        json_out_open(w, '[');
        for (; str_token(&rest, " \t\r\n", &token); count++)
            json_out_str(w, token);
        json_out_close(w, ']');
        if (!count)
            code = err_set(err, ERR_INVALID, "%s holds no token", path);
    }
    if (text.p)
        secure_zero(text.p, text.cap);
    buf_release(&text);
    return code;
}

static int forge_fill(struct json_out *w, const struct invocation *inv, struct err *err)
{
    const char *wants = invocation_flag(inv, "wants"), *file = invocation_flag(inv, "token-file");
    struct str rest = str_z(wants), word;

    json_out_member_str(w, "host", str_z(inv->args.items[0]));
    manage_flag(w, inv, "kind", "kind");
    manage_flag(w, inv, "api", "api");
    manage_flag(w, inv, "git", "git");
    manage_flag(w, inv, "bucket", "bucket");
    if (wants) {
        json_out_key(w, "wants");
        json_out_open(w, '[');
        while (str_token(&rest, ", ", &word))
            json_out_str(w, word);
        json_out_close(w, ']');
    }
    return file ? forge_fill_tokens(w, file, err) : 0;
}

static const struct manage_call set_forge = {"POST", "/api/v1/archive/forges",
                                             MANAGE_COLUMNS(forge_columns), .fill = forge_fill,
                                             .tell = tell_tokens};
static const struct manage_call list_forges = {
    "GET",         "/api/v1/archive/forges", MANAGE_COLUMNS(forge_columns), .rows = "forges",
    .pages = true, .tell = tell_tokens};
static const struct manage_call drop_forge = {"DELETE", "/api/v1/archive/forges/{0}"};
static const struct manage_call drop_token = {"DELETE",
                                              "/api/v1/archive/forges/{0}/tokens/{token}"};

static int command_forge_remove(struct invocation *inv)
{
    return manage(inv, invocation_flag(inv, "token") ? &drop_token : &drop_forge);
}

const struct command archive_forge_commands[] = {
    {.name = "archive forge add",
     .arguments = "HOST",
     .min_args = 1,
     .max_args = 1,
     .flags = forge_add_flags,
     .configured = true,
     .summary = "Add a git forge, or change one that was added",
     .help = "Adds a forge whose accounts can be archived, or changes one: options that are given "
             "replace the old ones, and tokens are added to the others. github.com is known from "
             "the start; adding it again gives it tokens. A host that is named so may be on a "
             "private network. Tokens are stored sealed and never shown.",
     .examples =
         "weir archive forge add github.com --token-file tokens.txt\n"
         "weir archive forge add git.example.org --kind gitea --wants zip,wikis\n"
         "weir archive forge add 10.1.2.3:3000 --kind gitlab --api http://10.1.2.3:3000/api/v4 "
         "--git http://10.1.2.3:3000",
     .call = &set_forge},
    {.name = "archive forge list",
     .flags = client_flags,
     .configured = true,
     .summary = "List the git forges",
     .help =
         "Lists the forges with their tokens' ids and quotas: how many requests are left, until "
         "when a host or a token rests, and which tokens the forge has refused.",
     .examples = "weir archive forge list\nweir archive forge list --json",
     .call = &list_forges},
    {.name = "archive forge remove",
     .arguments = "HOST",
     .min_args = 1,
     .max_args = 1,
     .flags = forge_remove_flags,
     .configured = true,
     .summary = "Forget a git forge that was added, or one of its tokens",
     .help = "Forgets a forge that was added while weir ran, with its tokens. Its accounts are no "
             "longer synced, and everything that was stored stays. github.com becomes again as it "
             "was from the start.",
     .examples = "weir archive forge remove git.example.org\n"
                 "weir archive forge remove github.com --token 1f2e3d4c5b6a",
     .run = command_forge_remove},
    {0},
};
