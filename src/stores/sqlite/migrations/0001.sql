-- A person on the list, and the events "this contact joined" and "was invited": at most one of each, by construction. `number` grows
-- with each row and is never reused: each insert gives one above the highest that there is or was. So rows are appended, and
-- only the unique index on the address is written at random. With `autoincrement` SQLite would write for a known address too.
-- States are compared one by one: for `in` with more than two values, SQLite makes a table of them for each row.
create table contact (
  number      integer primary key,
  id          text    not null,
  name        text    not null,
  email       text    not null,
  email_key   text    not null unique,
  state       text    not null check (state = 'unconfirmed' or state = 'pending' or state = 'held' or state = 'listed' or state = 'invited'),
  created_at  integer not null, -- times are in milliseconds since 1970-01-01T00:00:00Z
  provider_id text,             -- the provider's id for the contact, if it gave one
  event_name  text,
  event_at    integer,
  source      text,             -- where the signup came from, as JSON; null: not known
  reason      text,             -- why it is held
  mailbox     text,             -- the one behind all spellings of the address; null: none is known
  invited_at  integer,
  invite_name text,             -- the name of that event; null: nobody was told, as after an import
  code        text,             -- lets them in, and is nobody else's
  redeemed_at integer,          -- when the owner's app took the code
  asked_at    integer,          -- when a mail last asked to confirm the address
  asks        integer,          -- how many mails did
  confirmed_at integer,         -- when it was confirmed; null: it never had to be
  check ((event_name is null) = (event_at is null)),
  check (event_at is null or state in ('listed', 'invited')),
  check ((code is null) = (state <> 'invited'))
) strict;
create index contact_unconfirmed on contact (asked_at) where state = 'unconfirmed';
create index contact_pending on contact (number) where state = 'pending';
create index contact_held on contact (number) where state = 'held';
create index contact_mailbox on contact (mailbox) where mailbox is not null;
-- Only those who are invited have one.
create unique index contact_code on contact (code) where code is not null;
create index contact_redeemed on contact (redeemed_at) where redeemed_at is not null;

-- One contact, or one event of it, for one destination. A pending contact has a hand-over for each provider that was ever configured, so that
-- doubt about one is never taken for doubt about another. Hand-overs are deleted when the contact is listed.
create table delivery (
  number      integer primary key autoincrement,
  contact     integer not null references contact (number) on delete cascade,
  destination text    not null,
  event       text    not null default 'joined' check (event = 'joined' or event = 'invited' or event = 'asked'), -- a hand-over is a part of joining
  state       text    not null default 'waiting' check (state = 'waiting' or state = 'delivered' or state = 'abandoned'),
  attempts    integer not null default 0,
  doubt       integer not null default 0, -- 1: an attempt that ended may have taken effect without our knowing
  due_at      integer not null,           -- while leased, the end of the lease
  token       text,                       -- not null: an attempt began and has not been settled
  why         text,                       -- how the last attempt ended
  settled_at  integer,                    -- when it was delivered or abandoned
  unique (contact, destination, event)
) strict;
create trigger contact_deleted after delete on contact begin
  update sqlite_sequence set seq = max(seq, old.number) where name = 'contact';
end;
-- The highest number of a contact that was deleted.
insert into sqlite_sequence (name, seq) values ('contact', 0);
create index delivery_due on delivery (destination, due_at) where state = 'waiting';
create index delivery_abandoned on delivery (number) where state = 'abandoned';
create index delivery_delivered on delivery (settled_at) where state = 'delivered';

-- The last turn of each kind that instances take, such as that of telling a channel.
create table turn (
  name    text    primary key,
  token   text    not null,
  next_at integer not null -- the next one is not taken before
) strict, without rowid;

-- Addresses that the operator has erased, as keyed hashes (the key is in `secret`): older copies of these contacts must not
-- come back with an import or a restored backup.
create table erased (
  number    integer primary key autoincrement,
  hash      text    not null unique,
  erased_at integer not null
) strict;

-- Solutions of challenges that were used, each for one address, until they expire.
create table spent (
  nonce      text    primary key,
  claimant   text    not null, -- a hash of the address
  expires_at integer not null
) strict, without rowid;
create index spent_expiry on spent (expires_at);

-- When new contacts were let in. Numbers grow with time, so those between two moments need not be counted one by one.
create table arrival (
  number integer primary key,
  at     integer not null
) strict;
create index arrival_at on arrival (at);

-- Random values that all instances share, each made when it is first needed.
create table secret (
  number integer primary key autoincrement,
  name   text    not null unique,
  value  text    not null
) strict;
