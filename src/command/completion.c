/* Writes the completion script for bash. */
#include "command/help.h"
#include "conf/keys.h"

static void write_words(FILE *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", words[i]);
}

static void write_value_case(FILE *out, const struct flag *flag)
{
    if (flag->type == FLAG_FILE || flag->type == FLAG_FOLDER)
        fprintf(out, "    --%s) COMPREPLY=($(compgen -%c -- \"$current\")); return ;;\n",
                flag->name, flag->type == FLAG_FILE ? 'f' : 'd');
    if (flag->choices) {
        fprintf(out, "    --%s) COMPREPLY=($(compgen -W \"", flag->name);
        write_words(out, flag->choices);
        fputs("\" -- \"$current\")); return ;;\n", out);
    }
}

static void write_key_case(FILE *out, const struct conf_key *key)
{
    static const char *const booleans[] = {"true", "false", NULL};

    if (key->type == CONF_PATH)
        fprintf(out, "    --%s) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", key->name);
    if (key->type != CONF_ENUM && key->type != CONF_BOOL)
        return;
    fprintf(out, "    --%s) COMPREPLY=($(compgen -W \"", key->name);
    write_words(out, key->type == CONF_ENUM ? key->choices : booleans);
    fputs("\" -- \"$current\")); return ;;\n", out);
}

static void write_flag_words(FILE *out, const struct command *c)
{
    for (const struct flag *flag = c->flags; flag && flag->type != FLAG_END; flag++)
        fprintf(out, "--%s ", flag->name);
    if (c->configured)
        fputs("--config $keys ", out);
    fputs("--help", out);
}

/* Writes the first words of all commands, each once. The commands of a group are next to each other
 * in the table. */
static void write_commands(FILE *out, const struct command_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct str word, before = STR_EMPTY, rest;
        str_cut(str_z(table->rows[i].name), ' ', &word, &rest);
        if (i > 0)
            str_cut(str_z(table->rows[i - 1].name), ' ', &before, &rest);
        if (!str_eq(word, before))
            fprintf(out, "%s" STR_FMT, i ? " " : "", STR_ARG(word));
    }
}

/* Returns the length in bytes of the first `words` words of the name, or 0 when no word follows
 * them. */
static size_t group_len(const char *name, int words)
{
    size_t len = 0;

    for (; *name && words > 0; name++, len++)
        if (*name == ' ' && --words == 0)
            return len;
    return 0;
}

/* Writes, for each group, the words that may follow the group's first `words` words. */
static void write_groups(FILE *out, const struct command_table *table, int words)
{
    const char *before = "";

    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->rows[i].name;
        size_t len = group_len(name, words), to = group_len(name, words + 1);
        struct str group = str_n(name, len),
                   word = str_skip(str_n(name, to ? to : strlen(name)), len);
        if (len == 0 ||
            str_eq(str_head(str_z(before), len + word.len), str_n(name, len + word.len)))
            continue;
        fprintf(out,
                "    [ \"$COMP_CWORD $command%s\" = \"%d " STR_FMT "\" ] && words+=\"" STR_FMT
                "\"\n",
                words > 1 ? " ${COMP_WORDS[2]-}" : "", words + 1, STR_ARG(group), STR_ARG(word));
        before = name;
    }
}

void help_completion(const struct command_table *table, FILE *out)
{
    fputs("# Completion of weir for bash; written by `weir help --completion`.\n"
          "_weir() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local command=${COMP_WORDS[1]} words=\"\" keys=\"",
          out);
    for (size_t i = 0; i < conf_key_count; i++)
        if (!(conf_keys[i].flags & CONF_SECRET))
            fprintf(out, "%s--%s", i ? " " : "", conf_keys[i].name);
    fputs("\"\n    # bash splits --flag=value into three words\n"
          "    if [ \"$current\" = = ]; then current=\n"
          "    elif [ \"$previous\" = = ]; then previous=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W \"",
          out);
    write_commands(out, table);
    fputs("\" -- \"$current\"))\n        return\n    fi\n    case $previous in\n", out);
    for (size_t i = 0; i < table->count; i++)
        for (const struct flag *f = table->rows[i].flags; f && f->type != FLAG_END; f++)
            write_value_case(out, f);
    write_value_case(out, &config_flags[0]);
    for (size_t i = 0; i < conf_key_count; i++)
        write_key_case(out, &conf_keys[i]);
    fputs("    esac\n    case \"$command ${COMP_WORDS[2]-} ${COMP_WORDS[3]-} \" in\n", out);
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->rows[i].name;
        fprintf(out, "    \"%s \"*) words=\"", name);
        write_flag_words(out, &table->rows[i]);
        fputs("\" ;;\n", out);
    }
    fputs("    esac\n", out);
    write_groups(out, table, 1);
    write_groups(out, table, 2);
    fputs("    [ \"$command\" = help ] && words+=\" ", out);
    write_commands(out, table);
    fputs("\"\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
          "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
          "}\ncomplete -F _weir weir\n",
          out);
}
