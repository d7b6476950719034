import { totalmem } from 'node:os';

const megabytes = 2 ** 20;

/**
 * How the embedded server runs: durable in full (fsync, synchronous_commit and full_page_writes stay
 * on, as PostgreSQL has them), sized for a machine that does other things too.
 */
export function embeddedSettings(): string[] {
  const sharedBuffersMb = Math.min(512, Math.max(32, Math.floor(totalmem() / megabytes / 8)));
  return [
    `shared_buffers=${sharedBuffersMb}MB`,
    'max_connections=120',
    'max_wal_size=2GB',
    'wal_compression=on',
    // Short statements only: compiling one takes longer than running it.
    'jit=off',
    'timezone=UTC',
    'log_timezone=UTC',
    // What is wrong with a statement is told to the client; the log is about the server.
    'log_min_messages=log',
    'log_checkpoints=off',
    'log_min_error_statement=panic',
  ];
}
