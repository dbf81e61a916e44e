import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { nameOf, type RedisLocation, readRedisUrl } from '../../src/limiters/redis-url.ts'

const plain = { host: 'redis', port: 6379, db: 0, username: '', password: '', tls: null }
const noFiles = { ca: undefined, cert: undefined, key: undefined }

/** URL, what it means, and what the log says of it. */
const readable: readonly (readonly [string, Partial<RedisLocation>, string])[] = [
  ['redis://redis', {}, 'redis://redis:6379/0'],
  ['REDIS://redis:1/', { port: 1 }, 'redis://redis:1/0'],
  ['redis://[::1]:7000/3', { host: '::1', port: 7000, db: 3 }, 'redis://[::1]:7000/3'],
  ['redis://ada:s3cret@redis/15', { db: 15, username: 'ada', password: 's3cret' }, 'redis://redis:6379/15'],
  ['redis://:s3cret@redis', { password: 's3cret' }, 'redis://redis:6379/0'],
  ['redis://ada%3A:%40%2f:%25,@@redis', { username: 'ada:', password: '@/:%,@' }, 'redis://redis:6379/0'],
  ['rediss://redis:6380', { port: 6380, tls: noFiles }, 'rediss://redis:6380/0'],
  [
    'rediss://redis?cacert=/etc/a%20b.pem&cert=c.pem&key=k.pem',
    { tls: { ca: '/etc/a b.pem', cert: 'c.pem', key: 'k.pem' } },
    'rediss://redis:6379/0',
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
  'redis://re_dis!',
  'redis://redis/x',
  'redis://redis/-1',
  'redis://redis/1/2',
  'redis://redis/0#x',
  'redis://[::g]',
  'redis://::1',
  // A name alone, and what a password needs to be encoded for.
  'redis://ada@redis',
  'redis://ada:@redis',
  'redis://ada:a/b@redis',
  'redis://ada:a#b@redis',
  'redis://ada:%zz@redis',
  'redis://ada:%ff@redis',
  // A parameter that is unknown, twice there, empty, or without meaning here.
  'redis://redis?db=1',
  'redis://redis?cacert=a',
  'rediss://redis?db=1',
  'rediss://redis?cacert=',
  'rediss://redis?cacert=a&cacert=b',
  'rediss://redis?cert=a',
  'rediss://redis?key=a',
  'rediss://redis?cacert',
  // More than one server.
  'redis://a,b',
  'redis+cluster://a,b',
  'rediss+cluster://a',
  'redis+sentinel://s1,s2/main',
]

describe('the URL of Redis or Valkey', () => {
  for (const [url, location, name] of readable) {
    test(url, () => {
      assert.deepEqual(readRedisUrl(url), { ...plain, ...location })
      assert.equal(nameOf(readRedisUrl(url)!), name)
    })
  }

  test('what is none is not read', () => {
    for (const url of unreadable) assert.equal(readRedisUrl(url), undefined, JSON.stringify(url))
  })
})
