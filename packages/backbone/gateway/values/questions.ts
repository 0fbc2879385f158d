// Questions to the owner of a key, each answered once. If the owner changes meanwhile, the question goes to the new
// one, so asking twice must do no harm.

/**
 * @template C
 * @typedef {{ key: string, command: C, deadlineAt: number, link: object | undefined, done: (result: any) => void }} Question
 */

/**
 * @template {import('../../wire/codec.ts').Service} S
 * @param {object} options
 * @param {(key: string) => import('../link.ts').Link<S> | undefined} options.linkOf to the node that owns the key now
 * @param {() => number} options.now
 */
export function createQuestions({ linkOf, now }) {
  /** @type {Set<Question<S['Command']>>} */
  const open = new Set()
  let nextId = 0
  let isStopped = false

  /** @param {Question<S['Command']>} question */
  function say(question) {
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

  /** @param {Question<S['Command']>} question @param {S['Result'] | undefined} result */
  function finish(question, result) {
    open.delete(question)
    question.done(result)
  }

  return {
    /**
     * @param {string} key
     * @param {S['Command']} command
     * @param {{ deadlineMs: number }} options
     * @returns {Promise<S['Result'] | undefined>} `undefined` if no node answered in time
     */
    ask(key, command, { deadlineMs }) {
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
