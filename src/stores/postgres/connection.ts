import pg from 'pg'

/** `pg` leaves a connection open whose handshake failed on this side, and that would keep the process alive. */
export class Connection extends pg.Client {
  // As the pool calls it; nobody else does.
  override connect(done?: unknown): never {
    const connected = (error: Error) => {
      if (error) this.connection.stream.destroy()
      if (typeof done === 'function') done(error)
    }
    return super.connect(connected) as never
  }
}
