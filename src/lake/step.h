/* Named steps of the lake. Tests can make the lake stop or wait at a step. In weir these calls do
 * nothing; in the program that tests run, the linker replaces them by tests/crash/weir_faulty.c
 * (docs/lake.md, "Faults for tests"). A step begins before its effect and ends after it. */
#ifndef LAKE_STEP_H
#define LAKE_STEP_H

void lake_step_begin(const char *name);
void lake_step_end(const char *name);

#endif
