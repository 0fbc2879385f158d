// How a backend is told something (`notify` of a namespace): signed calls, their pace, and states that are told again.
export { createPace, type Pace, pauseMs } from './pace.ts'
export { createPost, type Outcome, type Post } from './post.ts'
export { createSecrets } from './secrets.ts'
export { createStatesTeller } from './states.ts'
