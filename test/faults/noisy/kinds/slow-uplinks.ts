import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 1_500;
const bytes = 65_536;
/** With more that wait behind another one a connection is closed. */
const pipelined = 30;

/**
 * A third never ends its headers, a third its body, which has nearly all come, a third its chunks; but one in fifteen
 * has written dozens of requests, and reads no answer.
 */
export const slowUplinks: NoisyKind = {
  name: 'slow-uplinks',
  says: '1,500 requests of a device over HTTP that never come to an end, or whose answers nobody reads',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const body = {
      protocol: 'http',
      device: { name: 'slow' },
      module: [{ moduleId: 'm', senses: [{ sId: '0x01' }] }],
    };
    const answer = await enemy.ask('POST', '/v2/devices', { body });
    if (answer.status !== 200) throw new Error(`Registration: ${answer.status} ${answer.text}`);
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = JSON.parse(answer.text) as {
      deviceAuthUuid: string;
      deviceAuthToken: string;
    };
    const head =
      `POST /devices/${uuid}/up/measurements HTTP/1.1\r\nHost: x\r\n` +
      `Authorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
    const value = '{"sId":"0x01","val":1}';
    const whole = `${head}Content-Length: ${value.length}\r\n\r\n${value}`;
    const blanks = ' '.repeat(bytes - 1_000);
    const starts = [
      { start: `${head}X-A: `, more: 'x' },
      { start: `${head}Content-Length: ${bytes}\r\n\r\n${blanks}`, more: ' ' },
      { start: `${head}Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n`, more: '1\r\n \r\n' },
    ];
    const unread = { start: whole.repeat(pipelined), more: whole };
    return async (signal) => {
      const open = new Map<ReturnType<typeof enemy.dial>, string>();
      const dial = (n: number) => {
        const isUnread = n % 15 === 0;
        const way = isUnread ? unread : starts[n % starts.length];
        if (!way || signal.aborted) return;
        const { start, more } = way;
        const socket = enemy.dial(port);
        if (isUnread) socket.pause();
        else socket.resume();
        enemy.tally.count('opened');
        open.set(socket, more);
        socket.write(start);
        socket.once('close', () => {
          open.delete(socket);
          setTimeout(dial, 100, n).unref();
        });
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        dial(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      while (!signal.aborted) {
        for (const [socket, more] of open) socket.write(more);
        await pause(2_000, signal);
      }
      await enough(signal);
    };
  },
};
