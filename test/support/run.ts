// Runs a program to its end, where a test needs what it makes.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export const run = promisify(execFile)
