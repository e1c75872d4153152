/* weir config: shows the configuration in use, and the origin of each value. */
#include "cli/commands.h"
#include "command/output.h"
#include "conf/keys.h"

int command_config(struct invocation *inv)
{
    static const struct output_column columns[] = {{"key"}, {"value"}, {"source"}};
    struct conf *conf = NULL;
    struct output table;
    struct buf text = {0};
    int status = invocation_conf(inv, &conf);

    if (status != 0)
        return status;
    output_init(&table, columns, ARRAY_SIZE(columns));
    for (size_t i = 0; i < conf_key_count; i++) {
        output_cell(&table, str_z(conf_keys[i].name));
        buf_reset(&text);
        conf_value_text(conf, &conf_keys[i], &text);
        output_cell(&table, buf_str(&text));
        buf_reset(&text);
        conf_source_text(conf, &conf_keys[i], &text);
        output_cell(&table, buf_str(&text));
    }
    if (invocation_flag(inv, "json"))
        output_print_json(&table, stdout);
    else
        output_print(&table, stdout);
    output_release(&table);
    buf_release(&text);
    conf_unref(conf);
    return EXIT_DONE;
}
