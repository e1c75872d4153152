/* Writes the man page, with roff's man macros. */
#include "command/help.h"
#include "conf/keys.h"

/* Writes text with escapes for roff, which interprets backslashes and a dot or quote at the start
 * of a line, and breaks lines at hyphens. */
static void man_text(FILE *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool line_start = i == 0 || text.p[i - 1] == '\n';
        if (line_start && (text.p[i] == '.' || text.p[i] == '\''))
            fputs("\\&", out);
        if (text.p[i] == '\\')
            fputs("\\e", out);
        else if (text.p[i] == '-')
            fputs("\\-", out);
        else
            fputc(text.p[i], out);
    }
}

static void man_entry(FILE *out, struct str term, const char *doc)
{
    fputs(".TP\n.B ", out);
    man_text(out, term);
    fputc('\n', out);
    man_text(out, str_z(doc));
    fputc('\n', out);
}

static void man_flags(FILE *out, const struct flag *flags)
{
    for (; flags && flags->type != FLAG_END; flags++) {
        struct buf name = BUF_INIT(256);
        help_flag_name(&name, flags);
        man_entry(out, buf_str(&name), flags->doc);
        buf_release(&name);
    }
}

static void man_paragraphs(FILE *out, const char *text)
{
    for (struct str rest = str_z(text); rest.len > 0;) {
        ptrdiff_t gap = str_find(rest, STR("\n\n"));
        fputs(".PP\n", out);
        man_text(out, gap < 0 ? rest : str_head(rest, (size_t)gap));
        fputc('\n', out);
        rest = gap < 0 ? STR_EMPTY : str_skip(rest, (size_t)gap + 2);
    }
}

static void man_command(FILE *out, const struct command *c)
{
    fprintf(out, ".SS \"weir %s%s%s\"\n", c->name, c->arguments ? " " : "",
            c->arguments ? c->arguments : "");
    man_paragraphs(out, c->help);
    man_flags(out, c->flags);
    if (c->configured) {
        man_flags(out, config_flags);
        man_entry(out, STR("--KEY VALUE"), "Any key of CONFIGURATION below that is no secret.");
    }
    if (c->examples) {
        fputs(".PP\n.EX\n", out);
        man_text(out, str_z(c->examples));
        fputs("\n.EE\n", out);
    }
}

static void man_keys(FILE *out)
{
    for (size_t i = 0; i < conf_key_count; i++) {
        const struct conf_key *key = &conf_keys[i];
        struct buf doc = BUF_INIT(4096);
        buf_appendf(&doc, "%s Takes ", key->doc);
        conf_key_allowed(key, &doc);
        buf_appendf(&doc, "; default %s.%s", *key->fallback ? key->fallback : "none",
                    key->flags & CONF_RELOADABLE ? " Reloadable." : "");
        man_entry(out, str_z(key->name), doc.p);
        buf_release(&doc);
    }
}

static const struct {
    const char *section, *term, *doc;
} tail[] = {
    {"SIGNALS", "SIGTERM, SIGINT",
     "Stop: accept nothing more, let running requests finish within shutdown.timeout. A second one "
     "ends weir at once."},
    {"SIGNALS", "SIGHUP", "Load the configuration again and take over what is reloadable."},
    {"ENVIRONMENT", "WEIR_CONFIG", "The configuration file when --config is not given."},
    {"ENVIRONMENT", "WEIR_KEY",
     "Any configuration key in capitals, dots as underscores: WEIR_S3_LISTEN for s3.listen."},
    {"FILES", "./weir.yaml, /etc/weir/weir.yaml",
     "The configuration file when none is named; the first that exists is read."},
    {"FILES", "DATA/credentials",
     "The first administrator's access key and secret key, mode 0600."},
    {"EXIT STATUS", "0", "Done."},
    {"EXIT STATUS", "1", "It failed; the line on standard error says why."},
    {"EXIT STATUS", "2", "Used or configured wrongly; nothing was begun."},
    {"EXIT STATUS", "3", "Of weir serve: a disk failed, and a new start may mend it."},
};

void help_man(const struct command_table *table, FILE *out)
{
    const char *section = "";

    fprintf(out, ".TH WEIR 1 \"\" \"weir %s\"\n", WEIR_VERSION);
    fputs(".SH NAME\nweir \\- one S3 endpoint in front of many storages\n"
          ".SH SYNOPSIS\n.B weir\n.I COMMAND\n[\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n"
          ".SH COMMANDS\nFlags are written \\-\\-name VALUE or \\-\\-name=VALUE.\n",
          out);
    for (size_t i = 0; i < table->count; i++)
        man_command(out, &table->rows[i]);
    fputs(".SH CONFIGURATION\nBuilt-in defaults, then the YAML file, then the environment, then "
          "flags; later ones win.\n",
          out);
    man_keys(out);
    for (size_t i = 0; i < ARRAY_SIZE(tail); i++) {
        if (strcmp(section, tail[i].section) != 0)
            fprintf(out, ".SH %s\n", tail[i].section);
        section = tail[i].section;
        man_entry(out, str_z(tail[i].term), tail[i].doc);
    }
}
