-- What `wrk` sends. Arguments: the method, a prefix that is unique to the measurement, and the body, if any. A PLACE (see
-- load.ts) in the body is replaced with a different text in each request. One thread is enough, and so is one counter.

local PLACE = '[<id>]'

function init(arguments)
  local prefix, body = arguments[2], arguments[3]
  wrk.method = arguments[1]
  if not body then return end
  wrk.headers['Content-Type'] = 'application/json'
  -- Random before the counter, so that addresses do not arrive in the order of the index.
  local count, before, after = 0, body:match('^(.*)' .. PLACE:gsub('%p', '%%%0') .. '(.*)$')
  wrk.body = before and before .. ('0'):rep(16 + #prefix) .. after or body
  if not before then return end
  local head = wrk.format():sub(1, -1 - #wrk.body)
  math.randomseed(os.time())
  -- Only with this function does wrk build a new request each time.
  request = function()
    count = count + 1
    return head .. before .. ('%08x%s%08x'):format(math.random(0, 0xffffffff), prefix, count) .. after
  end
end

function done(summary)
  local errors = summary.errors
  io.write(('\n{"requests":%d,"seconds":%.6f,"refused":%d,"lost":%d}\n'):format(
    summary.requests, summary.duration / 1e6, errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
