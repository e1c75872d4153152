-- Ends a task. ARGV: the arguments of end_task(): queue, id, outcome, message, seconds, counter, day, life of the day's
-- counters (s), token.
-- include part_end
return end_task(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9])
