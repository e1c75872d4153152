/* The named steps of the lake: nothing happens at them outside of tests. */
#include "lake/step.h"

#include "base/base.h"

void lake_step_begin(const char *name)
{
    UNUSED(name);
}

void lake_step_end(const char *name)
{
    UNUSED(name);
}
