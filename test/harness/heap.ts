import { once } from 'node:events'
import { type Program, until } from './program.ts'

/** What a program is started with so that its heap can be asked for. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

export interface Heap {
  /** Millions of bytes of the main thread that are in use, after garbage was collected. */
  used(): Promise<number>
  /** How many objects of each class are left, after garbage was collected. A class is named as `node:net Socket`. */
  objects<Class extends string>(classes: readonly Class[]): Promise<Record<Class, number>>
  close(): void
}

/** Looks into an inspected program. */
export async function heapOf({ stderr }: Pick<Program, 'stderr'>): Promise<Heap> {
  const address = () => /ws:\/\/\S+/.exec(stderr())?.[0]
  await until(() => address() !== undefined)
  const socket = new WebSocket(address()!)
  await once(socket, 'open')
  let asked = 0
  const ask = async (method: string, params = {}) => {
    const id = ++asked
    socket.send(JSON.stringify({ id, method, params }))
    for (;;) {
      const [{ data }] = (await once(socket, 'message')) as [{ data: string }]
      const answer = JSON.parse(data)
      if (answer.id === id) return answer.result
    }
  }
  return {
    async used() {
      await ask('HeapProfiler.collectGarbage')
      return (await ask('Runtime.getHeapUsage')).usedSize / 1e6
    },
    async objects<Class extends string>(classes: readonly Class[]) {
      const counted = classes.map(each => {
        const [module, name] = each.split(' ')
        const found = `process.getBuiltinModule('${module}').${name}`
        return `'${each}': process.getBuiltinModule('node:v8').queryObjects(${found}, { format: 'count' })`
      })
      const { result } = await ask('Runtime.evaluate', { expression: `({ ${counted} })`, returnByValue: true })
      return result.value as Record<Class, number>
    },
    close: () => socket.close(),
  }
}
