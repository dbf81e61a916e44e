import { connect } from 'node:net'

/** Sends bytes as they are and returns all that comes back until the other side closes, or for `wait` milliseconds. */
export function exchange(baseUrl: string, bytes: string | Buffer, wait = 5_000): Promise<string> {
  const { hostname, port } = new URL(baseUrl)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let received = ''
    const finish = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(received)
    }
    const timer = setTimeout(finish, wait)
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
    })
    socket.on('error', error => (received === '' ? reject(error) : finish()))
    socket.on('close', finish)
    socket.write(bytes)
  })
}
