/* Writes the pages of docs/ and the sample file that come from the tables of commands and keys. */
#include "command/help.h"
#include "conf/groups.h"
#include "conf/keys.h"

enum { PAGE_WIDTH = 120 }; /* the longest line outside of tables, in columns */

/* Writes the text of a table's cell; a '|' is escaped, because it would end the cell. */
static void write_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void write_flag_rows(FILE *out, const struct flag *flags)
{
    for (; flags && flags->type != FLAG_END; flags++) {
        struct buf name = BUF_INIT(256);
        help_flag_name(&name, flags);
        fputs("| `", out);
        write_cell(out, name.p);
        fputs("` | ", out);
        write_cell(out, flags->doc);
        fputs(" |\n", out);
        buf_release(&name);
    }
}

void help_commands(const struct command_table *table, FILE *out)
{
    fputs("# Commands\n\nWritten by `weir help --commands`; a test fails when this page is stale.\n"
          "The exit status is 0 for success, 1 for failure, and 2 when the command was used or "
          "configured wrongly and nothing\nwas begun. `weir serve` ends with 3 when a disk has "
          "failed and a new start may help.\n\n"
          "Commands that manage a running weir call its API with an access key. They take the key "
          "from the variables\n`WEIR_ACCESS_KEY` and `WEIR_SECRET_KEY`, or else from the file "
          "credentials of the data folder (`--data`), which is\nthe first administrator's. So on "
          "another machine:\n\n"
          "```\nexport WEIR_ACCESS_KEY=... WEIR_SECRET_KEY=...\n"
          "weir lake repo list --url https://weir.example:9001\n```\n",
          out);
    for (size_t i = 0; i < table->count; i++) {
        const struct command *c = &table->rows[i];
        fprintf(out, "\n## `");
        help_usage(c, out);
        fputs("`\n\n", out);
        help_paragraphs(out, c->help, PAGE_WIDTH);
        if (c->flags || c->configured)
            fputs("\n| flag | |\n|---|---|\n", out);
        write_flag_rows(out, c->flags);
        if (c->configured) {
            write_flag_rows(out, config_flags);
            fputs("| `--KEY VALUE` | Any key of [config.md](config.md) that is no secret. |\n",
                  out);
        }
        if (c->examples)
            fprintf(out, "\n```\n%s\n```\n", c->examples);
    }
}

static void write_key_row(FILE *out, const struct conf_key *key)
{
    struct buf allowed = BUF_INIT(1024);

    conf_key_allowed(key, &allowed);
    fprintf(out, "| `%s` | ", key->name);
    write_cell(out, allowed.p);
    if (key->unit)
        fprintf(out, " (%s)", key->unit);
    fprintf(out, " | %s%s%s |%s%s%s ", *key->fallback ? "`" : "", key->fallback,
            *key->fallback ? "`" : "", key->flags & CONF_SECRET ? " secret" : "",
            (key->flags & CONF_SECRET) && (key->flags & CONF_RELOADABLE) ? "," : "",
            key->flags & CONF_RELOADABLE ? " reload" : "");
    fprintf(out, "| ");
    write_cell(out, key->doc);
    fprintf(out, " |\n");
    buf_release(&allowed);
}

static void write_group_row(void *ctx, const char *prefix, const char *name, const char *doc)
{
    fprintf(ctx, "| `%s%s` | %s |\n", prefix, name, doc);
}

void help_keys(const struct command_table *table, FILE *out)
{
    (void)table;
    fputs("# Configuration\n\n"
          "Written by `weir help --keys`; a test fails when this page is stale.\n\n"
          "A value comes from one of four layers: the built-in defaults, the YAML file, the "
          "environment\n"
          "(`WEIR_S3_LISTEN` for `s3.listen`), and flags (`--s3.listen VALUE`). A later layer "
          "overrides an\n"
          "earlier one. `weir config` shows every value and where it came from, and masks secrets. "
          "The file\n"
          "is the one that `--config` names, else `$WEIR_CONFIG`, else `./weir.yaml`, else\n"
          "`/etc/weir/weir.yaml`. In the file, nested maps and dotted names mean the same:\n\n"
          "```yaml\ns3:\n  listen: 0.0.0.0:9000\nlog.level: debug\n```\n\n"
          "Aliases, anchors, tags, lists, a second document and a key that is given twice are "
          "refused. "
          "When\n"
          "something is wrong, weir prints one line for each problem, with file, line and key, and "
          "does not\n"
          "start (status 2). On SIGHUP weir reads the configuration again and uses the new values "
          "of the keys\n"
          "marked *reload*. Other keys keep their values until the next start, and a line in the "
          "log names the\n"
          "keys that differ. Certificates are read again even when their paths are the same. A "
          "file that is\n"
          "wrong changes nothing. Keys marked *secret* cannot be given as flags. Relative paths "
          "begin at the\n"
          "folder in which weir was started.\n\n"
          "| key | takes | default | | |\n|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < conf_key_count; i++)
        write_key_row(out, &conf_keys[i]);
    fputs("\n## Storages and users\n\n"
          "The file may also list users, and storages behind other S3 endpoints. weir does not "
          "store them: "
          "they\n"
          "exist as long as the file lists them, and commands cannot change them. NAME is a name "
          "of your\n"
          "choice. USER is the name of a user of weir, whose keys on the storage follow.\n\n"
          "```yaml\nstorages:\n  ceph:\n    url: https://s3.example.org\n    credentials:\n"
          "      alice: {access_key: AKIAEXAMPLE, secret_key: secret-on-ceph}\n"
          "users:\n  alice: {access_key: alice, secret_key: secret-here}\n```\n\n"
          "| key | |\n|---|---|\n",
          out);
    conf_groups_document(write_group_row, out);
}

void help_sample(const struct command_table *table, FILE *out)
{
    (void)table;
    fputs("# weir's configuration. Every key is here with its default; take away the # to set it.\n"
          "# `weir config` shows what is in force. See weir(1).\n",
          out);
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        struct buf allowed = BUF_INIT(1024);
        conf_key_allowed(key, &allowed);
        fprintf(out, "\n# %s\n# Takes %s.\n#%s: %s\n", key->doc, allowed.p, key->name,
                *key->fallback ? key->fallback : "\"\"");
        buf_release(&allowed);
    }
}
