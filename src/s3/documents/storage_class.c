/* Decides whether the gateway accepts a storage class. */
#include "s3/documents/storage_class.h"

bool storage_class_known(struct str list, struct str name)
{
    struct str one;

    if (str_eq(name, STR("STANDARD")))
        return true;
    while (str_token(&list, ",", &one))
        if (str_eq(str_trim(one), name))
            return true;
    return false;
}
