/* Named steps of the lake, at which tests stop or hold it. In weir these calls do nothing. In the
 * program that tests run, the linker replaces them by tests/crash/weir_faulty.c (docs/lake.md,
 * "Faults for tests"). A step begins before its effect and ends after it. */
#ifndef LAKE_STEP_H
#define LAKE_STEP_H

void lake_step_begin(const char *name);
void lake_step_end(const char *name);

#endif
