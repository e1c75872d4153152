-- Raises the number of a field of a vector (docs/replication.md, V1). ARGV: key of the vector, field. Answers the new
-- number.
-- include part_bump
return bump(ARGV[1], ARGV[2])
