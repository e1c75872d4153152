-- Makes later fences greater than a number. ARGV: the number.
-- include part_lock
if last_fence() < tonumber(ARGV[1]) then
    call('SET', FENCE, text(ARGV[1]))
end
return 1
