import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nameOf, type RedisLocation, readRedisUrl } from '../../src/limiters/redis-url.ts'

const open = { user: null, tls: null }
const node = (host: string, port: number) => ({ host, port })
const ada = { username: 'ada', password: 's3cret' }

/** URL, what it means, and what the log says of it. */
const readable: readonly (readonly [string, RedisLocation, string])[] = [
  ['redis://redis', { kind: 'single', node: node('redis', 6379), db: 0, ...open }, 'redis://redis:6379/0'],
  ['REDIS://redis:1/', { kind: 'single', node: node('redis', 1), db: 0, ...open }, 'redis://redis:1/0'],
  ['redis://[::1]:7000/3', { kind: 'single', node: node('::1', 7000), db: 3, ...open }, 'redis://[::1]:7000/3'],
  [
    'redis://ada:s3cret@redis.example.com/15',
    { kind: 'single', node: node('redis.example.com', 6379), db: 15, ...open, user: ada },
    'redis://redis.example.com:6379/15',
  ],
  [
    'redis://:s3cret@redis',
    { kind: 'single', node: node('redis', 6379), db: 0, ...open, user: { username: null, password: 's3cret' } },
    'redis://redis:6379/0',
  ],
  [
    'redis://ada%3A:%40%2f:%25,@@redis',
    { kind: 'single', node: node('redis', 6379), db: 0, ...open, user: { username: 'ada:', password: '@/:%,@' } },
    'redis://redis:6379/0',
  ],
  [
    'rediss://redis:6380',
    { kind: 'single', node: node('redis', 6380), db: 0, user: null, tls: { ca: null, pair: null } },
    'rediss://redis:6380/0',
  ],
  [
    'rediss://redis?cacert=/etc/a%20b+c.pem&cert=c.pem&key=k.pem',
    {
      kind: 'single',
      node: node('redis', 6379),
      db: 0,
      user: null,
      tls: { ca: '/etc/a b+c.pem', pair: { cert: 'c.pem', key: 'k.pem' } },
    },
    'rediss://redis:6379/0',
  ],
  [
    'redis+cluster://ada:s3cret@a:7000,[2001:db8::1],c',
    { kind: 'cluster', nodes: [node('a', 7000), node('2001:db8::1', 6379), node('c', 6379)], ...open, user: ada },
    'redis+cluster://a:7000,[2001:db8::1]:6379,c:6379',
  ],
  [
    'rediss+cluster://a/',
    { kind: 'cluster', nodes: [node('a', 6379)], user: null, tls: { ca: null, pair: null } },
    'rediss+cluster://a:6379',
  ],
  [
    'redis+sentinel://ada:s3cret@s1,s2:26380/main.1?sentinel-user=sue&sentinel-pass=p%26s',
    {
      kind: 'sentinel',
      sentinels: [node('s1', 26379), node('s2', 26380)],
      master: 'main.1',
      db: 0,
      ...open,
      user: ada,
      sentinelUser: { username: 'sue', password: 'p&s' },
    },
    'redis+sentinel://s1:26379,s2:26380/main.1/0',
  ],
  [
    'rediss+sentinel://s1/main/2?sentinel-pass=x&cacert=ca.pem',
    {
      kind: 'sentinel',
      sentinels: [node('s1', 26379)],
      master: 'main',
      db: 2,
      user: null,
      sentinelUser: { username: null, password: 'x' },
      tls: { ca: 'ca.pem', pair: null },
    },
    'rediss+sentinel://s1:26379/main/2',
  ],
]

const unreadable = [
  '',
  'redis',
  'redis:',
  'redis://',
  'redis:///0',
  'http://redis',
  'redis:redis',
  'redis+unix:///run/redis.sock',
  'redis://redis:0',
  'redis://redis:65536',
  'redis://redis:x',
  'redis://re dis',
  'redis://redis\n',
  'redis://re_dis!',
  'redis://redis/x',
  'redis://redis/-1',
  'redis://redis/1/2',
  'redis://redis/0#x',
  'redis://[::g]',
  'redis://::1',
  // A user or a password alone, and what a password needs to be encoded for.
  'redis://ada@redis',
  'redis://ada:@redis',
  'redis://@redis',
  'redis://ada:a/b@redis',
  'redis://ada:a#b@redis',
  'redis://ada:%zz@redis',
  'redis://ada:%ff@redis',
  // A parameter that is unknown, twice there, empty, or without meaning here.
  'redis://redis?db=1',
  'redis://redis?cacert=a',
  'rediss://redis?cacert=',
  'rediss://redis?cacert=a&cacert=b',
  'rediss://redis?cert=a',
  'rediss://redis?key=a',
  'rediss://redis?cacert',
  'redis://redis?sentinel-pass=x',
  'redis://a,b',
  'redis+cluster://a,',
  'redis+cluster://a,b/1',
  'redis+cluster://a,b/main',
  'redis+sentinel://s1',
  'redis+sentinel://s1/',
  'redis+sentinel://s1/a%20b',
  'redis+sentinel://s1/main/x',
  'redis+sentinel://s1/main/0/0',
  'redis+sentinel://s1/main?sentinel-user=sue',
]

describe('the URL of Redis or Valkey', () => {
  for (const [url, place, name] of readable) {
    test(url, () => {
      assert.deepEqual(readRedisUrl(url), place)
      assert.equal(nameOf(place), name)
    })
  }

  test('what is none is not read', () => {
    for (const url of unreadable) assert.equal(readRedisUrl(url), undefined, JSON.stringify(url))
  })

  test('the name of a place is the URL of the same place, for everybody', () => {
    for (const [, place, name] of readable) {
      const again = readRedisUrl(name)!
      assert.equal(nameOf(again), name)
      assert.deepEqual(
        { ...again, ...open },
        { ...place, ...open, ...('sentinelUser' in place && { sentinelUser: null }) },
      )
    }
  })
})
