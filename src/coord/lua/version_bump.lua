-- Raises the number of a field of a vector. ARGV: key of the vector, field. Answers the number.
-- include part_bump
return bump(ARGV[1], ARGV[2])
