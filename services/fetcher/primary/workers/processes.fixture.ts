// A worker that tells its primary what it was started with, for processes.test.ts.
process.send?.(process.env)
