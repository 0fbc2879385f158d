// The way to Valkey: opened, checked, watched over, and opened anew when it is lost. All that is known of the @redis/client
// package's ways is here.
//
// - A client that reconnects by itself would go on before what it met was checked: each serves one connection.
// - Its time-outs end commands that are not written yet. One that Valkey never answers, only the watch below notices.
// - Without its offline queue a command is refused at once where there is no connection, instead of kept and sent later.
// - An `error` event that nobody listens to ends the process.
import { BEAT_MS, createAwakeClock, SILENT_MS, type World } from '@keycast/service'
import { createClient, RESP_TYPES } from '@redis/client'
import { LogRefused } from '../log.ts'
import { clientUrl, hostOf } from './url.ts'

/** A working session. Commands are sent in the order given; those of one turn go in one write. */
export interface Session {
  /** On a connection of its own: WAITAOF holds it up. */
  write: <Reply>(args: (string | Buffer)[]) => Promise<Reply>
  /** Texts come as Buffers. */
  read: <Reply>(args: (string | Buffer)[]) => Promise<Reply>
  /** To sharded channels. */
  subscribe: (channels: string[]) => Promise<unknown>
  unsubscribe: (channels: string[]) => Promise<unknown>
  /** Rejects what is under way; another session is opened. */
  end: (error: Error) => void
}

/** Time between two attempts to open a session. */
const RETRY_MS = 200

const CONNECT_MS = 2_000

/** A start tries for this long: Valkey may be starting, too. Then it fails, and a supervisor tries again. */
const START_MS = 10_000

const asBuffers = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

interface Options extends World {
  /** As url.ts has it. */
  url: string
  /** Checks the server; a session is used only when this resolves. */
  prepare: (session: Session) => Promise<void>
  /** Of a channel that was subscribed. */
  onMessage: (channel: string, message: string) => void
  /** A session ended by itself, or could not be opened. */
  onLost: (error: Error) => void
  /** How long a start tries. */
  startMs?: number
}

export function createConnection({ url, prepare, onMessage, onLost, startMs = START_MS, now, every, after }: Options) {
  const where = hostOf(url)
  let current: Session | undefined
  let isClosed = false
  let stopRetry = () => {}

  async function open(): Promise<Session> {
    const clients = [newClient(url), newClient(url)]
    const [writer, reader] = clients
    let isEnded = false
    function end(error: Error) {
      if (isEnded) return
      isEnded = true
      lost.reject(error)
      awake.stop()
      for (const client of clients) client.destroy()
      if (current !== session) return
      current = undefined
      if (isClosed) return
      onLost(error)
      openLater()
    }
    for (const client of clients) client.on('error', end)
    const lost = Promise.withResolvers<never>()
    const awake = createAwakeClock({ periodMs: BEAT_MS, every, now })
    const watches = clients.map(() => createSilenceWatch(awake.now))
    const session: Session = {
      write: args => watches[0].over(writer.sendCommand(args)),
      read: args => watches[1].over(reader.sendCommand(args, asBuffers)),
      subscribe: channels =>
        watches[1].over(reader.sSubscribe(channels, (message, channel) => onMessage(channel, message))),
      unsubscribe: channels => watches[1].over(reader.sUnsubscribe(channels)),
      end,
    }
    awake.start(() => {
      if (watches.some(watch => watch.isSilent())) return end(new Error(`${where} does not answer`))
      if (current === session) session.read(['PING']).catch(() => {})
    })
    try {
      const connecting = clients.map((client, index) => watches[index].over(client.connect()))
      await Promise.race([lost.promise, Promise.all(connecting).then(() => prepare(session))])
    } catch (error) {
      end(error as Error)
      throw error
    }
    if (isClosed) end(new Error('closed'))
    if (isEnded) throw new Error('the connection was lost while it was made')
    current = session
    return session
  }

  function openLater() {
    stopRetry = after(RETRY_MS, async () => {
      try {
        await open()
      } catch (error) {
        if (isClosed) return
        onLost(error as Error)
        openLater()
      }
    })
  }

  return {
    where,

    /**
     * Resolves when there is a session.
     *
     * @throws {LogRefused} of `prepare`, at once
     * @throws {Error} if Valkey was not reached
     */
    async start() {
      const startedAt = now()
      for (;;) {
        try {
          return void (await open())
        } catch (error) {
          if (error instanceof LogRefused) throw error
          if (now() - startedAt >= startMs) throw new Error(`Valkey at ${where} cannot be used: ${whyNot(error)}`)
          await new Promise<void>(resolve => after(RETRY_MS, resolve))
        }
      }
    },

    /** The working session, if there is one now. */
    session: () => current,

    close() {
      isClosed = true
      stopRetry()
      current?.end(new Error('closed'))
    },
  }
}

function newClient(url: string) {
  return createClient({
    url: clientUrl(url),
    RESP: 3,
    name: 'keycast-journal',
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
    commandOptions: { timeout: undefined },
    socket: { reconnectStrategy: false, connectTimeout: CONNECT_MS },
  })
}

/**
 * Notices that commands are under way and nothing has come back for long.
 *
 * @param now by a clock that stands still while this process does: it could hear nothing meanwhile
 */
function createSilenceWatch(now: () => number) {
  let underWay = 0
  let heardAt = now()
  const hear = () => {
    underWay--
    heardAt = now()
  }
  return {
    over<T>(command: Promise<T>): Promise<T> {
      if (underWay++ === 0) heardAt = now()
      command.then(hear, hear)
      return command
    },
    isSilent: () => underWay > 0 && now() - heardAt > SILENT_MS,
  }
}

/** @param error names no cause if all of a host's addresses refused */
function whyNot(error: unknown) {
  const { message, code, errors } = error as NodeJS.ErrnoException & { errors?: Error[] }
  return message || errors?.[0]?.message || code || String(error)
}
