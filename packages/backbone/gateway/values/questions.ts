// Questions to the owner of a key, each answered once. If the owner changes meanwhile, the question goes to the new
// one, so asking twice must do no harm.
import type { Service } from '../../wire/codec.ts'
import type { Link } from '../link.ts'

interface Question<C> {
  key: string
  command: C
  deadlineAt: number
  link: object | undefined
  done: (result: any) => void
}

interface Options<S extends Service> {
  /** To the node that owns the key now. */
  linkOf: (key: string) => Link<S> | undefined
  now: () => number
}

export function createQuestions<S extends Service>({ linkOf, now }: Options<S>) {
  const open = new Set<Question<S['Command']>>()
  let nextId = 0
  let isStopped = false

  function say(question: Question<S['Command']>) {
    const link = isStopped || now() >= question.deadlineAt ? undefined : linkOf(question.key)
    if (!link) return finish(question, undefined)
    question.link = link
    const deadlineMs = question.deadlineAt - now()
    link.command({ id: String(++nextId), key: question.key, command: question.command, deadlineMs }, end => {
      if (question.link !== link || !open.has(question)) return
      if (end.type === 'result') finish(question, end.result)
      else if (end.type === 'refused') finish(question, undefined)
      // The link ended. Once the routes have changed, the question goes to another node; otherwise it is too late for
      // it.
      else queueMicrotask(() => question.link === link && open.has(question) && say(question))
    })
  }

  function finish(question: Question<S['Command']>, result: S['Result'] | undefined) {
    open.delete(question)
    question.done(result)
  }

  return {
    /** @returns `undefined` if no node answered in time */
    ask(key: string, command: S['Command'], { deadlineMs }: { deadlineMs: number }): Promise<S['Result'] | undefined> {
      return new Promise(done => {
        const question = { key, command, deadlineAt: now() + deadlineMs, link: undefined, done }
        open.add(question)
        say(question)
      })
    },

    stop() {
      isStopped = true
      for (const question of open) finish(question, undefined)
    },
  }
}
