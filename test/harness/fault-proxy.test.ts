import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'

const MESSAGE = Buffer.from('All happy families are alike; each unhappy family is unhappy in its own way. '.repeat(5))

interface Behind {
  readonly proxy: FaultProxy
  /** Every chunk that has passed. */
  readonly chunks: Buffer[]
  open(): Promise<Socket>
}

/** A proxy before a server that sends back what it is sent. */
async function stage(t: TestContext, seed = 1): Promise<Behind> {
  const chunks: Buffer[] = []
  const echo = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      socket.write(chunk)
    })
  }).listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const proxy = await startFaultProxy((echo.address() as AddressInfo).port, seed)
  t.after(async () => {
    await proxy.close()
    echo.close()
  })
  return {
    proxy,
    chunks,
    async open() {
      const socket = connect(proxy.port, '127.0.0.1')
      t.after(() => socket.destroy())
      await once(socket, 'connect')
      return socket
    },
  }
}

/** Sends the message and resolves with what comes back: all of it, or what there was before the end. */
function echoed(socket: Socket): Promise<{ back: Buffer; error?: string }> {
  return new Promise(resolve => {
    let back = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      back = Buffer.concat([back, chunk])
      if (back.length >= MESSAGE.length) resolve({ back })
    })
    socket.on('error', ({ message }) => resolve({ back, error: message }))
    socket.write(MESSAGE)
  })
}

const closed = (socket: Socket): Promise<void> =>
  new Promise(resolve => {
    socket.on('error', () => {}).once('close', () => resolve())
  })

const silence = (socket: Socket): Promise<boolean> =>
  new Promise(resolve => {
    socket.once('data', () => resolve(false))
    setTimeout(resolve, 200, true)
    socket.write('anybody?')
  })

describe('the fault proxy', { timeout: 30_000 }, () => {
  for (const fault of [
    { is: 'none' },
    { is: 'delay', most: 20 },
    { is: 'slice', most: 7 },
    { is: 'slow', bytesPerSecond: 4_000 },
  ] as const) {
    test(`${fault.is}: every byte comes, in order`, async t => {
      const { proxy, chunks, open } = await stage(t)
      proxy.set(fault)
      assert.deepEqual(await echoed(await open()), { back: MESSAGE })
      if (fault.is === 'slice') assert.ok(chunks.length > 10, `only ${chunks.length} pieces`)
    })
  }

  test('reset: the connection ends in the middle, at the same byte for the same seed', async t => {
    const ends: number[][] = []
    for (const seed of [7, 7, 8]) {
      const { proxy, chunks, open } = await stage(t, seed)
      proxy.set({ is: 'reset', most: MESSAGE.length })
      const passed: number[] = []
      for (let i = 0; i < 5; i++) {
        chunks.length = 0
        const { error } = await echoed(await open())
        assert.match(error ?? '', /ECONNRESET|EPIPE/)
        const all = Buffer.concat(chunks)
        assert.ok(MESSAGE.subarray(0, all.length).equals(all))
        passed.push(all.length)
      }
      ends.push(passed)
      proxy.set({ is: 'none' })
      assert.deepEqual(await echoed(await open()), { back: MESSAGE })
    }
    assert.deepEqual(ends[0], ends[1])
    assert.notDeepEqual(ends[0], ends[2])
  })

  test('cut: open connections end now, new ones work', async t => {
    const { proxy, open } = await stage(t)
    const socket = await open()
    assert.deepEqual(await echoed(socket), { back: MESSAGE })
    proxy.cut()
    await closed(socket)
    assert.deepEqual(await echoed(await open()), { back: MESSAGE })
  })

  test('pause: nothing passes; then all of it, even from somebody who is gone', async t => {
    const { proxy, chunks, open } = await stage(t)
    const [patient, gone] = [await open(), await open()]
    proxy.set({ is: 'pause' })
    assert.equal(await silence(patient), true)
    gone.end('too late')
    await once(gone, 'finish')
    const arrived = once(patient, 'data')
    proxy.set({ is: 'none' })
    assert.equal(String((await arrived)[0]), 'anybody?')
    while (!Buffer.concat(chunks).includes('too late')) await new Promise(resolve => setTimeout(resolve, 10))
  })

  for (const loses of ['requests', 'answers', 'both'] as const) {
    test(`black hole: ${loses} are lost, and the connection stays mute`, async t => {
      const { proxy, chunks, open } = await stage(t)
      proxy.set({ is: 'black hole', loses })
      const socket = await open()
      assert.equal(await silence(socket), true)
      assert.equal(Buffer.concat(chunks).includes('anybody?'), loses === 'answers')
      proxy.set({ is: 'none' })
      assert.equal(await silence(socket), true)
      assert.deepEqual(await echoed(await open()), { back: MESSAGE })
    })
  }

  test('nobody behind it: whoever comes is reset', async t => {
    const { proxy, open } = await stage(t)
    const nowhere = await startFaultProxy(1, 1)
    t.after(() => nowhere.close())
    await closed(connect(nowhere.port, '127.0.0.1'))
    proxy.set({ is: 'none' })
    assert.deepEqual(await echoed(await open()), { back: MESSAGE })
  })
})
