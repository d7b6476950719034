import { once } from 'node:events';
import { SMTPServer } from 'smtp-server';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** Somebody else's mail server takes its time. */
async function startSlowMailServer({ receiverPort, tally }: Enemy): Promise<void> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, callback) {
      tally.count('mails');
      stream.resume();
      stream.on('end', () => setTimeout(callback, 500));
    },
  });
  server.listen(receiverPort, '127.0.0.1');
  await once(server.server, 'listening');
  server.server.unref();
}

export const forgottenPasswords: NoisyKind = {
  name: 'forgotten-passwords',
  says: '64 loops that forget passwords from 256 addresses: of one account, of ten more, and of nobody',
  variables: (receiverPort) => ({ SMTP_URL: `smtp://127.0.0.1:${receiverPort}` }),
  async setUp(enemy) {
    await startSlowMailServer(enemy);
    const known = [enemy.account.email];
    for (let n = 0; n < 10; n += 1) known.push((await enemy.registerAccount()).email);
    return (signal) =>
      work(64, signal, async (worker, turn) => {
        const email =
          turn % 2 === 0 ? known[(worker + turn) % 11] : `nobody-${worker}-${turn}@example.com`;
        const address = `127.0.66.${((worker * 7 + turn) % 254) + 1}`;
        await enemy.ask('POST', '/v2/accounts/password/forgotten', { body: { email }, address });
        if (turn % 10 === 0) {
          const body = { token: `made up ${turn}`, password: 'long enough, and wrong' };
          await enemy.ask('POST', '/v2/accounts/password/reset', { body, address });
        }
      });
  },
};
