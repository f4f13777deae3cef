-- place_hold in one call. KEYS: token, resource. ARGV: requester, duration in ms.
-- Answers "0 201 id placed_at expires_at", "0 409" if the resource is not available, "0 422" if the token was
-- used for something else; "1 ..." is the first answer again. Numbers are handed over as strings: Redis would
-- otherwise print each of them again for each command, which made the whole a seventh slower.
local call = redis.call
local token, resource, requester, duration = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local asked = resource .. ' ' .. requester .. ' ' .. duration .. '\n'
local seen = call('GET', token)
if seen then
  if string.sub(seen, 1, #asked) == asked then
    return '1 ' .. string.sub(seen, #asked + 1)
  end
  return '0 422'
end

local answer = '409'
local row = call('HMGET', resource, 'capacity', 'taken', 'open')
if row[3] == '1' and tonumber(row[2]) < tonumber(row[1]) then
  local clock = call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local placed, expires = tostring(now), tostring(now + duration)
  local id = tostring(call('INCR', 'hold'))
  call('HSET', 'h:' .. id, 'resource', resource, 'requester', requester, 'state', 'held',
    'placed_at', placed, 'expires_at', expires)
  call('HINCRBY', resource, 'taken', '1')
  call('ZADD', 'expiry', expires, id)
  answer = '201 ' .. id .. ' ' .. placed .. ' ' .. expires
end
call('SET', token, asked .. answer, 'PX', '86400000')
return '0 ' .. answer
