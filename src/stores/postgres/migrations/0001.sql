-- A person on the list, and the events "this contact joined" and "was invited": at most one of each, by construction. The program
-- makes `id` before the insert: it shows whether a commit whose answer was lost took effect.
create table contact (
  number      bigint generated always as identity primary key,
  id          uuid        not null,
  name        text        not null,
  email       text        not null,
  email_key   text        not null collate "C" unique,
  state       text        not null check (state in ('unconfirmed', 'pending', 'held', 'listed', 'invited')),
  created_at  timestamptz not null,
  provider_id text, -- the provider's id for the contact, if it gave one
  event_name  text,
  event_at    timestamptz,
  source      json, -- where the signup came from; null: not known
  reason      text, -- why it is held
  mailbox     text collate "C", -- the one behind all spellings of the address; null: none is known
  invited_at  timestamptz,
  invite_name text, -- the name of that event; null: nobody was told, as after an import
  code        text collate "C", -- lets them in, and is nobody else's
  redeemed_at timestamptz, -- when the owner's app took the code
  asked_at    timestamptz, -- when a mail last asked to confirm the address
  asks        integer, -- how many mails did
  confirmed_at timestamptz, -- when it was confirmed; null: it never had to be
  check ((event_name is null) = (event_at is null)),
  check (event_at is null or state in ('listed', 'invited')),
  check ((code is null) = (state <> 'invited'))
);
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
  number      bigint generated always as identity primary key,
  contact     bigint      not null references contact (number) on delete cascade,
  destination text        not null,
  event       text        not null default 'joined' check (event in ('joined', 'invited', 'asked')), -- a hand-over is a part of joining
  state       text        not null default 'waiting' check (state in ('waiting', 'delivered', 'abandoned')),
  attempts    integer     not null default 0,
  doubt       boolean     not null default false, -- an attempt that ended may have taken effect without our knowing
  due_at      timestamptz not null,               -- while leased, the end of the lease
  token       uuid,                               -- not null: an attempt began and has not been settled
  why         text,                               -- how the last attempt ended
  settled_at  timestamptz,                        -- when it was delivered or abandoned
  unique (contact, destination, event)
);
create index delivery_due on delivery (destination, due_at, number) where state = 'waiting';
create index delivery_abandoned on delivery (number) where state = 'abandoned';
create index delivery_delivered on delivery (settled_at) where state = 'delivered';

-- The last turn of each kind that instances take, such as that of telling a channel.
create table turn (
  name    text        primary key,
  token   uuid        not null,
  next_at timestamptz not null -- the next one is not taken before
);

-- Addresses that the operator has erased, as keyed hashes (the key is in `secret`): older copies of these contacts must not
-- come back with an import or a restored backup.
create table erased (
  number    bigint generated always as identity primary key,
  hash      text        not null unique,
  erased_at timestamptz not null
);

-- Solutions of challenges that were used, each for one address, until they expire.
create table spent (
  nonce      text        collate "C" primary key,
  claimant   text        not null, -- a hash of the address
  expires_at timestamptz not null
);
create index spent_expiry on spent (expires_at);

-- When new contacts were let in. Numbers grow with time, so those between two moments need not be counted one by one.
create table arrival (
  number bigint primary key,
  at     timestamptz not null
);
create index arrival_at on arrival (at, number);

-- Random values that all instances share, each made when it is first needed.
create table secret (
  number bigint generated always as identity primary key,
  name   text not null unique,
  value  text not null
);
