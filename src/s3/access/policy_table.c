/* Looks up actions and condition keys in the tables of policy_table.h. */
#include "s3/access/policy_table.h"

const struct s3_action_row s3_actions[S3_ACTIONS] = {
#define X(name, text, on) {text, S3_ON_##on},
    S3_ACTION_TABLE(X)
#undef X
};

const struct policy_key_row policy_keys[POLICY_KEYS] = {
#define X(name, text, limits, given) {text, limits, given},
    POLICY_KEY_TABLE(X)
#undef X
};

bool policy_key_find(struct str name, enum policy_key *key, struct str *suffix)
{
    for (size_t i = 0; i < POLICY_KEYS; i++) {
        struct str row = str_z(policy_keys[i].name);
        bool open = row.p[row.len - 1] == '/';
        if (open ? name.len > row.len && str_ieq(str_head(name, row.len), row)
                 : str_ieq(name, row)) {
            *key = (enum policy_key)i;
            *suffix = open ? str_skip(name, row.len) : STR_EMPTY;
            return true;
        }
    }
    return false;
}
