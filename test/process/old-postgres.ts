import { startStranger, type Stranger } from './refused-start.ts';

/**
 * Speaks just enough of PostgreSQL's protocol to be asked for its version, because this machine has no server that is
 * too old: no TLS, no password, and `versionNumber` in answer to any query.
 */
export function startOldPostgres(versionNumber: string): Promise<Stranger> {
  return startStranger((socket) => {
    let isStarted = false;
    socket.on('data', (bytes) => {
      if (bytes.length === 8) socket.write('N');
      else if (!isStarted) {
        isStarted = true;
        socket.write(Buffer.concat([message('R', int32(0)), ready]));
      } else if (bytes.toString('latin1', 0, 1) === 'Q') {
        socket.write(Buffer.concat([...answer('server_version_num', versionNumber), ready]));
      }
    });
  });
}

const ready = message('Z', Buffer.from('I'));

function answer(column: string, value: string): Buffer[] {
  // One column: its name, then table, number, type text, size -1, modifier -1, format text.
  const about = [int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)];
  return [
    message('T', int16(1), Buffer.from(`${column}\0`), ...about),
    message('D', int16(1), int32(value.length), Buffer.from(value)),
    message('C', Buffer.from('SHOW\0')),
  ];
}

function message(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}

function int16(value: number): Buffer {
  const buffer = Buffer.alloc(2);
  buffer.writeInt16BE(value);
  return buffer;
}
