-- What the provider calls a contact, where it said so.
alter table contact add column provider_id text;

-- Attempts find their contact by its id. UUIDv7 grows with time, so this index too is appended at its end.
create unique index contact_id on contact (id);

-- A pending contact: what is known of the attempts to tell the provider. The row goes when the contact is listed.
create table registration (
  contact  integer primary key references contact (number),
  provider text,                       -- asked last; doubt is about this one alone
  attempts integer not null default 0,
  doubt    integer not null default 0, -- 1: an attempt may have taken effect without our knowing
  due_at   integer not null,           -- milliseconds since 1970; while leased, the end of the lease
  token    text,                       -- not null: an attempt began and has not been concluded
  why      text                        -- what the last attempt came to
) strict;
create index registration_due on registration (due_at);

-- One event for one destination.
create table delivery (
  number      integer primary key,
  contact     integer not null references event (contact),
  destination text    not null,
  state       text    not null default 'waiting' check (state in ('waiting', 'delivered', 'abandoned')),
  attempts    integer not null default 0,
  doubt       integer not null default 0,
  due_at      integer not null,
  token       text,
  why         text,
  settled_at  integer,                 -- when it was delivered or abandoned
  unique (contact, destination)
) strict;
create index delivery_due on delivery (destination, due_at) where state = 'waiting';
create index delivery_abandoned on delivery (number) where state = 'abandoned';
