-- What a journal does in Valkey, as functions: each runs alone, so that any node may append and one order comes out.
-- functions.ts loads them under a name that has the hash of this text: nodes of two releases do not change each other's.
--
-- key                       type        holds
-- keycast:log               hash        its id, the epoch and whose it is, bytes and rooms and ids in all, the floor
-- keycast:room:<key>        hash        where the room stands, and how much of it is kept
-- keycast:messages:<key>    stream      its messages, with <seq>-0 for an id: a seq cannot be given twice. Those that were
--                                       deleted are missing, from the room's oldest on
-- keycast:ids:<key>         hash        publisher and messageId to seq, digest and time
-- keycast:ids               list        ids whose messages went within five minutes, the first to go first
-- keycast:expiry            sorted set  rooms by when their oldest message is past its age
-- keycast:charges           hash        room and seq to what is charged for it, and to whom; seq 0: for the room itself
-- keycast:accounts          hash        what each account is charged, and each kind of payer
-- keycast:notes             string      what journals leave to each other: the bounds of histories
-- keycast:outbox            sorted set  rooms of which a backend is still to be told something, by the time of the first
-- keycast:outbox:<key>      stream      of a room, the messages that it is to be told, with <seq>-0 for an id
-- keycast:outbox-gaps       hash        room to what it never will be told, as JSON
-- keycast:outbox-news       set         rooms that came to have something in the outbox, until the journal that tells asks
-- keycast:outbox-owner      string      names the journal that tells

local LOG = 'keycast:log'
local IDS = 'keycast:ids'
local EXPIRY = 'keycast:expiry'
local CHARGES = 'keycast:charges'
local ACCOUNTS = 'keycast:accounts'
local NOTES = 'keycast:notes'
local OUTBOX = 'keycast:outbox'
local OUTBOX_GAPS = 'keycast:outbox-gaps'
local OUTBOX_NEWS = 'keycast:outbox-news'
local OUTBOX_OWNER = 'keycast:outbox-owner'

-- As in log.ts.
local ID_MS = 5 * 60000
local MESSAGE_BYTES = 96

local OUTBOX_ENTRY_BYTES = 256

local EMPTY_MS = 3600000
local FLOOR_STEP = 1000000

-- What an id takes of memory, and a room.
local ID_BYTES = 192
local ROOM_BYTES = 512

-- Messages trimmed in one call, roughly: while it runs, Valkey serves nobody else.
local TRIM_MAX = 10000

-- Charges that one call of expire looks at, for those that a journal of an earlier release left behind.
local LOOK_CHARGES = 20

local KEPT, DUPLICATE, CONFLICT, FULL, CAPACITY, OLDER = 0, 1, 2, 3, 4, 5

local function whole(number) return string.format('%.0f', number) end

-- Milliseconds since 1970. Journals do not say it: one whose clock is ahead would trim the history of all. A test does.
local function timeOf(said)
  if said ~= '' then return tonumber(said) end
  local clock = redis.call('TIME')
  return tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
end

-- It changes when a replica was made primary, and when Valkey was started again: messages that were acknowledged may be
-- missing since.
local function replid() return string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') end

-- The epoch of all rooms. Under another replid than before it is a new one: numbers that were lost are given again, and must
-- not look like those that clients know.
local function renewed(candidate)
  local stored = redis.call('HMGET', LOG, 'epoch', 'replid')
  local now = replid()
  if stored[1] and stored[2] == now then return stored[1] end
  redis.call('HSET', LOG, 'epoch', candidate, 'replid', now)
  return candidate
end

-- The id of the log. It stays when an epoch begins: the journals of one log may notice that at different times.
local function idOf(candidate)
  redis.call('HSETNX', LOG, 'id', candidate)
  return redis.call('HGET', LOG, 'id')
end

local function loadLog()
  local stored = redis.call('HMGET', LOG, 'bytes', 'rooms', 'ids', 'floor')
  return {
    bytes = tonumber(stored[1]) or 0,
    rooms = tonumber(stored[2]) or 0,
    ids = tonumber(stored[3]) or 0,
    floor = tonumber(stored[4]) or 0,
    charged = {},
  }
end

local function bytesOfAll(log) return log.bytes + log.ids * ID_BYTES + log.rooms * ROOM_BYTES end

-- Written even where nothing changed: then WAITAOF also waits for what a duplicate stands on.
local function saveLog(log)
  redis.call('HSET', LOG, 'bytes', whole(log.bytes), 'rooms', whole(log.rooms), 'ids', whole(log.ids),
    'floor', whole(log.floor))
  for account, bytes in pairs(log.charged) do
    if bytes ~= 0 and redis.call('HINCRBY', ACCOUNTS, account, whole(bytes)) <= 0 then
      redis.call('HDEL', ACCOUNTS, account)
    end
  end
end

-- A payer is its kind and its accounts, with dots between them: each is charged.
local function change(log, payer, bytes)
  for account in string.gmatch(payer, '[^.]+') do log.charged[account] = (log.charged[account] or 0) + bytes end
end

local function charge(log, name, seq, payer, bytes)
  if bytes == '0' then return end
  change(log, payer, tonumber(bytes))
  redis.call('HSET', CHARGES, name .. '\n' .. seq, bytes .. ' ' .. payer)
end

-- Takes back what is charged for some seqs of a room.
local function discharge(log, name, seqs)
  if #seqs == 0 then return end
  local fields = {}
  for n, seq in ipairs(seqs) do fields[n] = name .. '\n' .. seq end
  local found = {}
  for n, stored in ipairs(redis.call('HMGET', CHARGES, unpack(fields))) do
    if stored then
      local bytes, payer = string.match(stored, '^(%d+) (.*)$')
      change(log, payer, -tonumber(bytes))
      found[#found + 1] = fields[n]
    end
  end
  if #found > 0 then redis.call('HDEL', CHARGES, unpack(found)) end
end

-- The newest stays whatever it weighs: it was acknowledged.
local function hasTooMuch(room)
  local held = room.seq - room.oldest + 1
  return held > 1 and (held > room.messages or room.bytes > room.bytesMax)
end

-- When its oldest message may be past its age, or the empty room be forgotten; at once where it is still to be trimmed.
-- "oldestAt" of an empty one: since when it is.
local function dueOf(room)
  if hasTooMuch(room) then return 0 end
  return room.oldestAt + (room.oldest > room.seq and EMPTY_MS or room.ageMs)
end

local function loadRoom(name)
  local stored = redis.call(
    'HMGET', 'keycast:room:' .. name, 'seq', 'oldest', 'oldestAt', 'bytes', 'messages', 'ageMs', 'bytesMax',
    'order', 'rank')
  local floor = stored[1] and 0 or tonumber(redis.call('HGET', LOG, 'floor')) or 0
  local room = {
    name = name,
    isNew = not stored[1],
    seq = tonumber(stored[1]) or floor,
    oldest = tonumber(stored[2]) or floor + 1,
    oldestAt = tonumber(stored[3]) or 0,
    bytes = tonumber(stored[4]) or 0,
    messages = tonumber(stored[5]),
    ageMs = tonumber(stored[6]),
    bytesMax = tonumber(stored[7]),
    -- Where its messages are values: as in log.ts.
    order = tonumber(stored[8]),
    rank = tonumber(stored[9]),
  }
  room.dueBefore = not room.isNew and dueOf(room)
  return room
end

local function saveRoom(room)
  redis.call('HSET', 'keycast:room:' .. room.name,
    'seq', whole(room.seq), 'oldest', whole(room.oldest), 'oldestAt', whole(room.oldestAt), 'bytes', whole(room.bytes),
    'messages', whole(room.messages), 'ageMs', whole(room.ageMs), 'bytesMax', whole(room.bytesMax))
  if room.order then redis.call('HSET', 'keycast:room:' .. room.name, 'order', whole(room.order)) end
  if room.rank then redis.call('HSET', 'keycast:room:' .. room.name, 'rank', whole(room.rank)) end
  local due = dueOf(room)
  -- A journal of an earlier release did not look at once.
  if due ~= room.dueBefore or due == 0 then redis.call('ZADD', EXPIRY, whole(due), room.name) end
end

local function seqOf(entry) return tonumber(string.match(entry[1], '^%d+')) end

-- An entry is {id, {'a', at, 'f', from, 'm', messageId, 'd', data}}; 'x' and what it deletes follow where it tells of that.
local function bytesOf(entry)
  local fields = entry[2]
  return MESSAGE_BYTES + #fields[4] + #fields[6] + #fields[8]
end

-- An id goes with its message, and is kept for five minutes at least. `entries` went, as far as before `last`.
local function forgetTrimmed(room, log, at, entries, last)
  local past, outliving, seqs = {}, {}, {}
  for n = 1, last - 1 do
    local fields = entries[n][2]
    seqs[n] = whole(seqOf(entries[n]))
    if fields[6] ~= '' then
      local id = fields[4] .. '\n' .. fields[6]
      if at - tonumber(fields[2]) > ID_MS then past[#past + 1] = id
      else outliving[#outliving + 1] = fields[2] .. '\n' .. room.name .. '\n' .. id end
    end
  end
  if #past > 0 then log.ids = log.ids - redis.call('HDEL', 'keycast:ids:' .. room.name, unpack(past)) end
  if #outliving > 0 then redis.call('RPUSH', IDS, unpack(outliving)) end
  discharge(log, room.name, seqs)
end

-- Takes the oldest messages away while there are too many, too heavy or too old ones. Returns how many went, at most `most`.
local function trim(room, log, at, most)
  local messages = 'keycast:messages:' .. room.name
  local first = room.oldest
  local function isPast()
    if room.oldest > room.seq or room.oldest - first >= most then return false end
    return hasTooMuch(room) or at - room.oldestAt > room.ageMs
  end
  while isPast() do
    local excess = room.seq - room.oldest + 1 - room.messages
    local count = math.max(2, math.min(100, excess + 1))
    local entries = redis.call('XRANGE', messages, whole(room.oldest) .. '-0', '+', 'COUNT', count)
    local n = 1
    while entries[n] and isPast() do
      if room.oldest == seqOf(entries[n]) then
        local bytes = bytesOf(entries[n])
        room.bytes = room.bytes - bytes
        log.bytes = log.bytes - bytes
        n = n + 1
        if entries[n] then room.oldestAt = tonumber(entries[n][2][2]) end
      end
      -- Of a deleted one nothing is left but its place.
      room.oldest = room.oldest + 1
    end
    forgetTrimmed(room, log, at, entries, n)
    -- The next one's age is not known where the part ended with the one that went.
    if not entries[n] and room.oldest <= room.seq then
      local following = redis.call('XRANGE', messages, whole(room.oldest) .. '-0', '+', 'COUNT', 1)[1]
      if following then room.oldestAt = tonumber(following[2][2]) else room.oldest = room.seq + 1 end
    end
  end
  if room.oldest == first then return 0 end
  if room.oldest <= room.seq then
    redis.call('XTRIM', messages, 'MINID', '=', whole(room.oldest) .. '-0')
  else
    redis.call('DEL', messages)
    room.oldestAt = at
  end
  return room.oldest - first
end

local function entryOf(name, seq)
  return redis.call('XRANGE', 'keycast:messages:' .. name, seq .. '-0', seq .. '-0')[1]
end

-- Forgets ids whose messages went before them. A journal of an earlier release lists ids of messages that are held, too.
local function forgetIds(limit, at, log)
  for _ = 1, limit do
    local first = redis.call('LINDEX', IDS, 0)
    if not first then return end
    local notedAt, name, id = string.match(first, '^(%d+)\n([^\n]+)\n(.*)$')
    if at - tonumber(notedAt) <= ID_MS then return end
    redis.call('LPOP', IDS)
    local known = redis.call('HGET', 'keycast:ids:' .. name, id)
    local seq = known and string.match(known, '^%d+')
    if seq and not entryOf(name, seq) then
      log.ids = log.ids - redis.call('HDEL', 'keycast:ids:' .. name, id)
    end
  end
end

-- time or nothing, candidate; then of each publish: room, from, messageId or nothing, digest, data, of the history
-- messages, ageMs, bytesMax, how much the log may hold; payer or nothing, how many times what is left each of its accounts
-- may hold, what is charged for the message, and for the room if it is new; 'v' and a rank or nothing for a value, else nothing;
-- whether a backend is to be told of it.
-- Returns {epoch, bytes, rooms, outcomes}, an outcome being {what, seq, at, and of what is kept the oldest seq of its room; of
-- a value its order, and the highest rank before it or nothing}; so it is of one that is older. Ranks are texts: a reply's numbers are
-- not read to their last digit.
local PUBLISH_ARGUMENTS = 15

-- What is known of the ids that a call brings: of each room, by id, what is stored of it, or false. One look for each room.
local function knownIds(args)
  local wanted, known = {}, {}
  for n = 3, #args, PUBLISH_ARGUMENTS do
    local name, messageId = args[n], args[n + 2]
    if messageId ~= '' then
      wanted[name] = wanted[name] or {}
      table.insert(wanted[name], args[n + 1] .. '\n' .. messageId)
    end
  end
  for name, ids in pairs(wanted) do
    local stored = redis.call('HMGET', 'keycast:ids:' .. name, unpack(ids))
    known[name] = {}
    for n, id in ipairs(ids) do known[name][id] = stored[n] end
  end
  return known
end

-- Whether so many bytes of the room go when a message of this weight comes. Of the first hundred messages, for the time that
-- it takes.
local function isRelieved(room, messages, ageMs, bytesMax, weight, at, over)
  if room.oldest > room.seq then return false end
  local entries = redis.call('XRANGE', 'keycast:messages:' .. room.name, whole(room.oldest) .. '-0', '+', 'COUNT', 100)
  local gone = 0
  for _, entry in ipairs(entries) do
    local isTooMuch = room.seq - seqOf(entry) + 2 > messages or room.bytes - gone + weight > bytesMax
    if not isTooMuch and at - tonumber(entry[2][2]) <= ageMs then return false end
    gone = gone + bytesOf(entry)
    if gone >= over then return true end
  end
  return false
end

-- What the accounts that a call names are charged: each stands in it as '<account>=<times what is left>;'.
local function heldByAccounts(args)
  local names, held = {}, {}
  for n = 13, #args, PUBLISH_ARGUMENTS do
    for account in string.gmatch(args[n], '([^;=]+)=') do
      if not held[account] then names[#names + 1] = account end
      held[account] = 0
    end
  end
  if #names == 0 then return held end
  for n, bytes in ipairs(redis.call('HMGET', ACCOUNTS, unpack(names))) do held[names[n]] = tonumber(bytes) or 0 end
  return held
end

-- Why so many bytes are not kept for a payer, where so many are left: as in charges.ts.
local function refusalOf(log, held, shares, bytes, left)
  local refusal
  for account, weight in string.gmatch(shares, '([^;=]+)=([^;]+)') do
    local most = left * tonumber(weight)
    if bytes > most then return FULL end
    if held[account] + (log.charged[account] or 0) + bytes > most then refusal = CAPACITY end
  end
  return refusal
end

local function untoldBytesOf(name, from, messageId, data)
  return OUTBOX_ENTRY_BYTES + #name + MESSAGE_BYTES + #data + #from + #messageId
end

-- Written with the message itself, so that there is no message of which a backend would not hear.
local function putUntold(name, seq, epoch, atText, from, messageId, data, deletes)
  local fields = { 'e', epoch, 'a', atText, 'f', from, 'm', messageId, 'd', data }
  if deletes then fields[11], fields[12] = 'x', deletes end
  redis.call('XADD', 'keycast:outbox:' .. name, seq .. '-0', unpack(fields))
  redis.call('ZADD', OUTBOX, 'NX', atText, name)
  redis.call('SADD', OUTBOX_NEWS, name)
  redis.call('HINCRBY', LOG, 'outbox', untoldBytesOf(name, from, messageId, data))
end

local function append(_, args)
  local at = timeOf(args[1])
  local atText = whole(at)
  local epoch = renewed(args[2])
  local log = loadLog()
  local known = knownIds(args)
  local held = heldByAccounts(args)
  local rooms, outcomes = {}, {}
  -- Written once for each room: a command costs several times what a message adds to it.
  local minted = {}

  local function keep(n)
    local name, from, messageId, digest, data, messages, ageMs, bytesOfRoomMax, bytesMax, payer, shares, ownCharge, roomCharge, value, isTold =
      unpack(args, n, n + PUBLISH_ARGUMENTS - 1)
    messages, ageMs, bytesOfRoomMax = tonumber(messages), tonumber(ageMs), tonumber(bytesOfRoomMax)
    local id = from .. '\n' .. messageId
    local first = messageId ~= '' and known[name][id]
    if first then
      local seq, keptAt, knownDigest = string.match(first, '^(%d+) (%d+) (.*)$')
      if knownDigest ~= digest then return { CONFLICT, 0, 0 } end
      return { DUPLICATE, tonumber(seq), tonumber(keptAt) }
    end
    local bytes = MESSAGE_BYTES + #data + #from + #messageId
    local idBytes = messageId ~= '' and ID_BYTES or 0
    local room = rooms[name] or loadRoom(name)
    local rank, rankBefore = tonumber(string.sub(value, 2)), room.rank
    if rank and rankBefore and rank < rankBefore then return { OLDER, 0, 0, 0, 0, whole(rankBefore) } end
    local roomBytes = room.isNew and not rooms[name] and ROOM_BYTES or 0
    local left = tonumber(bytesMax) - bytesOfAll(log)
    local function isRelievedOf(over)
      return isRelieved(room, messages, ageMs, bytesOfRoomMax, bytes, at, over)
    end
    local over = bytes + idBytes + roomBytes - left
    if over > 0 and not isRelievedOf(over) then return { FULL, 0, 0 } end
    local refusal = refusalOf(log, held, shares, bytes + idBytes + roomBytes, left)
    if refusal and not isRelievedOf(bytes) then return { refusal, 0, 0 } end
    if roomBytes > 0 then
      log.rooms = log.rooms + 1
      charge(log, name, '0', payer, roomCharge)
    end
    rooms[name] = room
    room.messages, room.ageMs, room.bytesMax = messages, ageMs, bytesOfRoomMax
    room.seq = room.seq + 1
    if room.oldest == room.seq then room.oldestAt = at end
    room.bytes = room.bytes + bytes
    log.bytes = log.bytes + bytes
    local seq = whole(room.seq)
    charge(log, name, seq, payer, ownCharge)
    redis.call('XADD', 'keycast:messages:' .. name, seq .. '-0', 'a', atText, 'f', from, 'm', messageId, 'd', data)
    if isTold == '1' then putUntold(name, seq, epoch, atText, from, messageId, data) end
    if messageId ~= '' then
      local stored = seq .. ' ' .. atText .. ' ' .. digest
      known[name][id] = stored
      local ids = minted[name] or {}
      minted[name] = ids
      ids[#ids + 1] = id
      ids[#ids + 1] = stored
      log.ids = log.ids + 1
    end
    if value == '' then return { KEPT, room.seq, at, name } end
    room.order = math.max(at, (room.order or 0) + 1)
    room.rank = rank or rankBefore
    return { KEPT, room.seq, at, name, room.order, rankBefore and whole(rankBefore) or '' }
  end

  for n = 3, #args, PUBLISH_ARGUMENTS do outcomes[#outcomes + 1] = keep(n) end
  for name, ids in pairs(minted) do redis.call('HSET', 'keycast:ids:' .. name, unpack(ids)) end
  local left = TRIM_MAX
  for _, room in pairs(rooms) do
    left = left - trim(room, log, at, left)
    saveRoom(room)
  end
  for _, outcome in ipairs(outcomes) do
    if outcome[1] == KEPT then outcome[4] = rooms[outcome[4]].oldest end
  end
  -- As many as came, and one more: however many messages there are a second, ids do not pile up.
  forgetIds(#outcomes + 1, at, log)
  saveLog(log)
  return { epoch, bytesOfAll(log), log.rooms, outcomes }
end

-- A room that was empty for an hour and that no journal listens to leaves nothing but the log's floor. It may be watched,
-- so that those who watch it know where it stands.
local function forgetOrKeep(room, log, at, channel)
  if redis.call('PUBSUB', 'SHARDNUMSUB', channel .. room.name)[2] > 0 then
    room.oldestAt = at
    return saveRoom(room)
  end
  local ids = 'keycast:ids:' .. room.name
  log.ids = log.ids - redis.call('HLEN', ids)
  redis.call('DEL', ids, 'keycast:room:' .. room.name)
  redis.call('ZREM', EXPIRY, room.name)
  discharge(log, room.name, { '0' })
  log.rooms = log.rooms - 1
  if room.seq > log.floor then log.floor = math.ceil(room.seq / FLOOR_STEP) * FLOOR_STEP end
end

-- Journals of a release before this remove messages, and leave their charges. Some are looked at, whichever they are.
local function forgetCharges(log)
  for _, field in ipairs(redis.call('HRANDFIELD', CHARGES, LOOK_CHARGES)) do
    local name, seq = string.match(field, '^([^\n]+)\n(%d+)$')
    local oldest = tonumber(redis.call('HGET', 'keycast:room:' .. name, 'oldest') or math.huge)
    if oldest == math.huge or (seq ~= '0' and tonumber(seq) < oldest) then discharge(log, name, { seq }) end
  end
end

local KINDS = { '#users', '#guests', '#addresses' }

-- time or nothing, how many rooms and ids are looked at, and the channel that a room's name follows. Returns {rooms
-- touched, bytes, rooms, bytes charged of each kind of payer}.
local function expire(_, args)
  local at, limit = timeOf(args[1]), tonumber(args[2])
  local log = loadLog()
  local due = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', '(' .. whole(at), 'LIMIT', 0, limit)
  local touched, trimmed = 0, 0
  for _, name in ipairs(due) do
    local room = loadRoom(name)
    if room.oldest > room.seq and at - room.oldestAt > EMPTY_MS then
      forgetOrKeep(room, log, at, args[3])
    else
      trimmed = trimmed + trim(room, log, at, TRIM_MAX)
      saveRoom(room)
    end
    touched = touched + 1
    if trimmed >= TRIM_MAX then break end
  end
  local idsBefore = log.ids
  forgetIds(limit, at, log)
  forgetCharges(log)
  if touched > 0 or log.ids ~= idsBefore or next(log.charged) then saveLog(log) end
  local charged = redis.call('HMGET', ACCOUNTS, unpack(KINDS))
  for n = 1, #KINDS do charged[n] = tonumber(charged[n] or 0) end
  return { touched, bytesOfAll(log), log.rooms, charged }
end

-- A room loses some of its messages. Returns how many those were, and what they were in JSON.
local function deleteSome(room, log, at, seqs)
  local messages = 'keycast:messages:' .. room.name
  local gone, ranges = {}, {}
  for _, seq in ipairs(seqs) do
    local entry = tonumber(seq) >= room.oldest and entryOf(room.name, seq)
    if entry and not entry[2][9] then
      gone[#gone + 1] = entry
      redis.call('XDEL', messages, entry[1])
      room.bytes = room.bytes - bytesOf(entry)
      log.bytes = log.bytes - bytesOf(entry)
      local last = ranges[#ranges]
      if last and last[2] + 1 == tonumber(seq) then last[2] = tonumber(seq)
      else ranges[#ranges + 1] = { tonumber(seq), tonumber(seq) } end
    end
  end
  forgetTrimmed(room, log, at, gone, #gone + 1)
  local texts = {}
  for n, range in ipairs(ranges) do texts[n] = '[' .. whole(range[1]) .. ',' .. whole(range[2]) .. ']' end
  return #gone, '[' .. table.concat(texts, ',') .. ']'
end

-- A room loses all of its messages, as many as do not hold Valkey up.
local function deleteAll(room, log, at)
  local ageMs = room.ageMs
  local newest = room.oldest == room.seq and entryOf(room.name, whole(room.oldest))
  if newest and newest[2][9] then return 0, '' end
  room.ageMs = -math.huge
  local gone = trim(room, log, at, TRIM_MAX)
  room.ageMs = ageMs
  return gone, '[[1,' .. whole(room.oldest - 1) .. ']]'
end

-- time or nothing, candidate, room, whether a backend is told; 'all', or 'some' and then seqs. Returns {epoch, bytes, rooms, how many went,
-- whether there are more}, and of what tells readers {seq, at, what, oldest}.
local function delete(_, args)
  local at = timeOf(args[1])
  local epoch = renewed(args[2])
  local log, room = loadLog(), loadRoom(args[3])
  local count, deletes = 0, ''
  if not room.isNew then
    if args[5] == 'all' then count, deletes = deleteAll(room, log, at)
    else count, deletes = deleteSome(room, log, at, { unpack(args, 6) }) end
  end
  local isMore = args[5] == 'all' and room.oldest <= room.seq
  if count == 0 then return { epoch, bytesOfAll(log), log.rooms, 0, 0, {} } end
  local messages = 'keycast:messages:' .. room.name
  room.seq = room.seq + 1
  redis.call('XADD', messages, whole(room.seq) .. '-0', 'a', whole(at), 'f', '', 'm', '', 'd', 'null', 'x', deletes)
  if args[4] == '1' then putUntold(room.name, whole(room.seq), epoch, whole(at), '', '', 'null', deletes) end
  room.bytes = room.bytes + MESSAGE_BYTES + #'null'
  log.bytes = log.bytes + MESSAGE_BYTES + #'null'
  -- The first one may be among those that went.
  room.oldestAt = tonumber(redis.call('XRANGE', messages, '-', '+', 'COUNT', 1)[1][2][2])
  local told = { room.seq, at, deletes, room.oldest }
  saveRoom(room)
  saveLog(log)
  return { epoch, bytesOfAll(log), log.rooms, count, isMore and 1 or 0, told }
end

-- time or nothing; then of rooms: room, messages, ageMs, bytesMax. They are trimmed to that, as many as do not hold Valkey up. Returns
-- {how many of them are done, bytes, rooms}.
local RETAIN_ARGUMENTS = 4

local function retain(_, args)
  local at = timeOf(args[1])
  local log = loadLog()
  local bytesBefore, trimmed, done = log.bytes, 0, 0
  for n = 2, #args, RETAIN_ARGUMENTS do
    local room = loadRoom(args[n])
    local messages, ageMs, bytesMax = tonumber(args[n + 1]), tonumber(args[n + 2]), tonumber(args[n + 3])
    if not room.isNew and (room.messages ~= messages or room.ageMs ~= ageMs or room.bytesMax ~= bytesMax) then
      room.messages, room.ageMs, room.bytesMax = messages, ageMs, bytesMax
      trimmed = trimmed + trim(room, log, at, TRIM_MAX)
      saveRoom(room)
    end
    done = done + 1
    if trimmed >= TRIM_MAX then break end
  end
  if log.bytes ~= bytesBefore then saveLog(log) end
  return { done, bytesOfAll(log), log.rooms }
end

-- room, after or before, the bound, limit, bytesMax, epoch or nothing. Returns {epoch, seq, oldest, bytes, entries, whether
-- there are no more, of a room of values the order or 0, and the rank or nothing}, those entries from the bound on; none where the
-- epoch is another one.
local function read(_, args)
  local epoch = redis.call('HGET', LOG, 'epoch')
  local side, bound, limit, bytesLeft = args[2], tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  local room = loadRoom(args[1])
  if args[6] ~= '' and args[6] ~= epoch then return { epoch, room.seq, room.oldest, room.bytes, {} } end
  local messages = 'keycast:messages:' .. args[1]
  local found = {}
  local isEnd = 0
  local isForward = side == 'after'
  local nextSeq = isForward and math.max(bound + 1, room.oldest) or math.min(bound - 1, room.seq)
  local average = math.max(1, (room.bytes / math.max(1, room.seq - room.oldest + 1)) - MESSAGE_BYTES)
  while #found < limit and bytesLeft > 0 and nextSeq >= room.oldest and nextSeq <= room.seq do
    -- Not more than fits, as far as can be said before it is seen.
    local count = whole(math.max(1, math.min(limit - #found, math.ceil(bytesLeft / average))))
    local entries = isForward
      and redis.call('XRANGE', messages, whole(nextSeq) .. '-0', '+', 'COUNT', count)
      or redis.call('XREVRANGE', messages, whole(nextSeq) .. '-0', '-', 'COUNT', count)
    isEnd = #entries == 0 and 1 or 0
    if isEnd == 1 then break end
    for _, entry in ipairs(entries) do
      bytesLeft = bytesLeft - #entry[2][8] - #(entry[2][10] or '')
      if bytesLeft < 0 and #found > 0 then break end
      found[#found + 1] = entry
      nextSeq = seqOf(entry) + (isForward and 1 or -1)
    end
  end
  return { epoch, room.seq, room.oldest, room.bytes, found, isEnd, room.order or 0, room.rank and whole(room.rank) or '' }
end

-- Rooms. Returns {whether epoch and id are there and still right, epoch, id, then {seq, oldest} of each}; of one
-- that is not there {0, 1}, which is no news.
local function heads(_, rooms)
  local stored = redis.call('HMGET', LOG, 'epoch', 'replid', 'id')
  local found = { stored[2] == replid() and stored[3] and 1 or 0, stored[1], stored[3] }
  for _, name in ipairs(rooms) do
    local room = redis.call('HMGET', 'keycast:room:' .. name, 'seq', 'oldest')
    found[#found + 1] = { tonumber(room[1]) or 0, tonumber(room[2]) or 1 }
  end
  return found
end

-- time or nothing. Returns {text, time}.
local function notes(_, args)
  return { redis.call('GET', NOTES) or '', timeOf(args[1]) }
end

-- before, after. Returns 1, or 0 where another journal was faster.
local function note(_, args)
  if (redis.call('GET', NOTES) or '') ~= args[1] then return 0 end
  redis.call('SET', NOTES, args[2])
  return 1
end

-- So many bytes went out of the outbox. Returns those left. Of nothing, -bytes would be -0, which HINCRBY refuses.
local function lighten(bytes) return redis.call('HINCRBY', LOG, 'outbox', whole(0 - bytes)) end

-- An entry of the outbox is {id, {'e', epoch, 'a', at, 'f', from, 'm', messageId, 'd', data}}, and perhaps 'x'.
local function untoldEntryBytes(name, entry)
  local fields = entry[2]
  return untoldBytesOf(name, fields[6], fields[8], fields[10])
end

-- A room of which something was taken out: it stands by the time of what is its first message now, or not at all.
local function placeUntold(name, isWithGap)
  local stream = 'keycast:outbox:' .. name
  local first = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  if first then redis.call('ZADD', OUTBOX, 'XX', first[2][4], name)
  else
    redis.call('DEL', stream)
    if not isWithGap then redis.call('ZREM', OUTBOX, name) end
  end
end

-- time or nothing, room, the first seq, limit, bytesMax. Returns {time, gap or nothing, entries}.
local function untold(_, args)
  local name, bytesLeft = args[2], tonumber(args[5])
  local found = {}
  for _, entry in ipairs(redis.call('XRANGE', 'keycast:outbox:' .. name, args[3] .. '-0', '+', 'COUNT', args[4])) do
    bytesLeft = bytesLeft - #entry[2][10]
    if bytesLeft < 0 and #found > 0 then break end
    found[#found + 1] = entry
  end
  return { timeOf(args[1]), redis.call('HGET', OUTBOX_GAPS, name) or '', found }
end

-- The journal that takes; then room, seq, gap or nothing. Returns the bytes of the outbox, or -1 where another one tells.
local function take(_, args)
  if redis.call('GET', OUTBOX_OWNER) ~= args[1] then return -1 end
  local bytes = 0
  for n = 2, #args, 3 do
    local name, upTo, gap = args[n], args[n + 1], args[n + 2]
    local stream = 'keycast:outbox:' .. name
    for _, entry in ipairs(redis.call('XRANGE', stream, '-', upTo .. '-0')) do
      bytes = bytes + untoldEntryBytes(name, entry)
    end
    redis.call('XTRIM', stream, 'MINID', '=', whole(tonumber(upTo) + 1) .. '-0')
    if redis.call('HDEL', OUTBOX_GAPS, name) == 1 then bytes = bytes + OUTBOX_ENTRY_BYTES + #name end
    if gap ~= '' then
      redis.call('HSET', OUTBOX_GAPS, name, gap)
      bytes = bytes - OUTBOX_ENTRY_BYTES - #name
    end
    placeUntold(name, gap ~= '')
  end
  return lighten(bytes)
end

-- room, seqs. Returns the bytes of the outbox.
local function remove(_, args)
  local name = args[1]
  local bytes = 0
  for n = 2, #args do
    local id = args[n] .. '-0'
    local entry = redis.call('XRANGE', 'keycast:outbox:' .. name, id, id)[1]
    if entry then
      bytes = bytes + untoldEntryBytes(name, entry)
      redis.call('XDEL', 'keycast:outbox:' .. name, id)
    end
  end
  placeUntold(name, redis.call('HEXISTS', OUTBOX_GAPS, name) == 1)
  return lighten(bytes)
end

-- A journal, and for how long it tells. Returns {whether it does, the bytes of the outbox}.
local function own(_, args)
  local owner = redis.call('GET', OUTBOX_OWNER)
  local isMine = not owner or owner == args[1]
  if isMine then redis.call('SET', OUTBOX_OWNER, args[1], 'PX', args[2]) end
  return { isMine and 1 or 0, tonumber(redis.call('HGET', LOG, 'outbox') or 0) }
end

-- How many at most. Returns rooms, which are no news from then on.
local function outboxNews(_, args) return redis.call('SPOP', OUTBOX_NEWS, args[1]) end

-- candidate. Returns {epoch, bytes, rooms, id}.
local function open(_, args)
  local epoch = renewed(args[1])
  local log = loadLog()
  return { epoch, bytesOfAll(log), log.rooms, idOf(args[1]) }
end

redis.register_function('VERSION_append', append)
-- Without memory left they must run: expiry is what makes some.
redis.register_function { function_name = 'VERSION_expire', callback = expire, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_delete', callback = delete, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_retain', callback = retain, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_open', callback = open, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_note', callback = note, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_take', callback = take, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_remove', callback = remove, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_own', callback = own, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_outbox_news', callback = outboxNews, flags = { 'allow-oom' } }
redis.register_function { function_name = 'VERSION_untold', callback = untold, flags = { 'no-writes' } }
redis.register_function { function_name = 'VERSION_notes', callback = notes, flags = { 'no-writes' } }
redis.register_function { function_name = 'VERSION_read', callback = read, flags = { 'no-writes' } }
redis.register_function { function_name = 'VERSION_heads', callback = heads, flags = { 'no-writes' } }
