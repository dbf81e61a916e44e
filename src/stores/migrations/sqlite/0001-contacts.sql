-- A person on the list. `number` is internal: it grows with each row, so rows and the event index are appended at the
-- end of the file and only the unique index on the address is written at random.
create table contact (
  number     integer primary key,
  id         text    not null check (length(id) = 36),
  name       text    not null,
  email      text    not null,
  email_key  text    not null unique,
  state      text    not null check (state in ('pending', 'listed')),
  created_at integer not null -- milliseconds since 1970-01-01T00:00:00Z
) strict;

-- "This contact joined". The primary key is the promise: one event for each contact.
create table event (
  contact    integer primary key references contact (number),
  name       text    not null,
  created_at integer not null
) strict;
