-- Makes later fences greater than a number. ARGV: the number. Returns 0 if no claim can have had that number as its
-- fence.
-- include part_lock
local fence = tonumber(ARGV[1])
if not fence or fence > RAISE_MAX then
    return 0
end
if last_fence() < fence then
    call('SET', FENCE, text(fence))
end
return 1
