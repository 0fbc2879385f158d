// A worker that tells its primary what it was started with, for processes.test.js.
process.send?.(process.env)
