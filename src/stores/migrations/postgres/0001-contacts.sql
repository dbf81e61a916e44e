-- A person on the list. `id` is made by the program before the insert, so that whoever lost the answer to a commit can
-- look whether it took effect. `listed_by` and `ended_by` are for the same reason: the id that a statement which ended an
-- attempt was given.
create table contact (
  number      bigint generated always as identity primary key,
  id          uuid        not null unique,
  name        text        not null,
  email       text        not null,
  email_key   text        not null collate "C" unique,
  state       text        not null check (state in ('pending', 'listed')),
  created_at  timestamptz not null,
  provider_id text,
  listed_by   uuid
);

-- "This contact joined". The primary key is the promise: one event for each contact.
create table event (
  contact    bigint primary key references contact (number),
  name       text        not null,
  created_at timestamptz not null
);

-- A pending contact: what is known of the attempts to tell the provider. The row goes when the contact is listed.
create table registration (
  contact  bigint primary key references contact (number),
  provider text,
  attempts integer     not null default 0,
  doubt    boolean     not null default false, -- an attempt that ended may have taken effect without our knowing
  due_at   timestamptz not null,               -- while leased, the end of the lease
  token    uuid,                               -- not null: an attempt began and has not ended
  ended_by uuid,
  why      text
);
create index registration_due on registration (due_at);

-- One event for one destination.
create table delivery (
  number      bigint generated always as identity primary key,
  contact     bigint      not null references event (contact),
  destination text        not null,
  state       text        not null default 'waiting' check (state in ('waiting', 'delivered', 'abandoned')),
  attempts    integer     not null default 0,
  doubt       boolean     not null default false,
  due_at      timestamptz not null,
  token       uuid,
  ended_by    uuid,
  why         text,
  settled_at  timestamptz,
  unique (contact, destination)
);
create index delivery_due on delivery (destination, due_at) where state = 'waiting';
create index delivery_abandoned on delivery (number) where state = 'abandoned';
