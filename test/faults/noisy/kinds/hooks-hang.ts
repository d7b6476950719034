import { createServer } from 'node:http';
import { once } from 'node:events';
import { flood, demand, install, registerDevices } from '../devices.ts';
import type { EnemyDevice } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { pause } from '../workers.ts';

/** As many as an address may register in an hour, with some to spare. */
const accounts = 90;
/** A receiver that hangs is given up after this long: whoever waits for one waits as long. */
const longestMs = 5_000;
/** Each value above 0 opens an alarm, each below closes it. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [eventOf(1, { actions: { cloud: { sendPush: true } }, thresholds: { isGt: 0 } })],
    },
  ],
};

export const hooksHang: NoisyKind = {
  name: 'hooks-hang',
  says: '90 accounts whose webhooks never answer, while the webhook of another one waits for its alarms',
  settings: () => ({ notifications: { webhooks: { allowPrivateAddresses: true } } }),
  async setUp(enemy) {
    const heard: string[] = [];
    // All hosts are this one; only what is for the witness is answered.
    const server = createServer((request, response) => {
      enemy.tally.count(
        request.url === '/witness' ? 'webhooks of the witness' : 'webhooks that hang',
      );
      if (request.url !== '/witness') return;
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        heard.push(text);
        response.end();
      });
    });
    server.listen(enemy.receiverPort, '0.0.0.0');
    await once(server, 'listening');
    server.unref();

    const register = async (url: string): Promise<EnemyDevice> => {
      const account = await enemy.registerAccount();
      await demand(enemy, 'PUT', '/v2/accounts/contacts', {
        token: account.token,
        body: { webhooks: [{ url: `http://${url}`, whenOver: false }] },
      });
      const [device] = await registerDevices(enemy, 1, { account });
      if (!device) throw new Error('No device was registered.');
      await install(enemy, [device], [purpose], account);
      return device;
    };
    const noisy: EnemyDevice[] = [];
    for (let n = 0; n < accounts; n++)
      noisy.push(await register(`127.0.1.${n + 1}:${enemy.receiverPort}/hangs`));
    const witness = await register(`127.0.2.1:${enemy.receiverPort}/witness`);

    const measure = (val: number) =>
      demand(enemy, 'POST', `/devices/${witness.uuid}/up/measurements`, {
        token: witness.token,
        body: { sId: '0x01', val },
      });
    /** Alarm after alarm; throws where one is told as late as if it had waited for a receiver that hangs. */
    async function watch(signal: AbortSignal): Promise<void> {
      let longest = 0;
      for (let n = 1; !signal.aborted; n++) {
        await measure(-1);
        const before = heard.length;
        const sinceMs = performance.now();
        await measure(1);
        while (heard.length === before && !signal.aborted) await pause(5, signal);
        const tookMs = performance.now() - sinceMs;
        if (heard.length === before) break;
        longest = Math.max(longest, tookMs);
        if (tookMs >= longestMs)
          throw new Error(`The witness was told of its alarm ${n} after ${Math.round(tookMs)} ms.`);
      }
      enemy.tally.count('ms at most until the witness was told', Math.round(longest));
    }
    const payload = (_: number, seq: number) =>
      JSON.stringify({ sId: '0x01', val: seq % 2 === 0 ? -1 : 1 });
    return async (signal) => {
      await Promise.all([
        flood(enemy, { devices: noisy, inFlight: 1, ratePerSecond: 180, payload }, signal),
        watch(signal),
      ]);
    };
  },
};
