// Options that the scenarios of rooms share.
import { Option } from 'commander'

export const logOption = () =>
  new Option('--log <log>', 'with --start: where the journal keeps messages; valkey starts a valkey-server')
    .choices(['lmdb', 'memory', 'valkey'])
    .default('lmdb')
