import { Agent, request } from 'node:http';
import type { RegisteredAccount } from '../../../bench/api.ts';
import type { WitnessDevice } from '../register.ts';
import type { World } from '../world.ts';

/** How long answers took, in milliseconds. A wrong or missing answer counts as failed. */
export type Answers = { ms: number[]; failed: number; why: Record<string, number> };

export type People = {
  livez: Answers;
  reads: Answers;
  logins: Answers;
  /** Stops, and waits for what is under way. */
  stop(): Promise<void>;
};

const passwordOfAll = 'a password of the bench';
/** A request that takes longer is given up, and counts as this long. */
const giveUpMs = 10_000;
const livezEveryMs = 50;
const readEveryMs = 100;
/** For each of two people: half of what `quotas.loginsPerAccount` allows. */
const loginEveryMs = 1_000;

/**
 * A probe of /livez, and two people of two accounts who read and log in. Each sends requests at its own pace, whether
 * or not the previous answer has arrived: a slow service must not be asked less often.
 */
export function startPeople(world: World): People {
  const people = { livez: empty(), reads: empty(), logins: empty() };
  const underWay = new Set<Promise<void>>();
  const agent = new Agent({ keepAlive: true });
  const every = (ms: number, ask: (turn: number) => Promise<void>) => {
    let turn = 0;
    return setInterval(() => {
      const asked = ask(turn++).finally(() => underWay.delete(asked));
      underWay.add(asked);
    }, ms);
  };
  const [first, second = first] = world.accounts;
  const personOf = (turn: number) => (turn % 2 === 0 ? first : second);
  const timers = [
    every(livezEveryMs, () => time(people.livez, agent, `${world.service.url}/livez`)),
    every(readEveryMs, (turn) => {
      const person = personOf(turn);
      const path = pathsOf(world, person)[Math.floor(turn / 2) % 3] ?? '/v2/accounts';
      const headers = { Authorization: `Bearer ${person.token}` };
      return time(people.reads, agent, world.service.url + path, { headers });
    }),
    every(loginEveryMs, (turn) => {
      const body = JSON.stringify({ email: personOf(turn).email, password: passwordOfAll });
      // A connection of its own, because a person who logs in has none yet.
      return time(people.logins, undefined, `${world.service.url}/v2/accounts/login`, { body });
    }),
  ];
  return {
    ...people,
    async stop() {
      timers.forEach(clearInterval);
      await Promise.all(underWay);
      agent.destroy();
    },
  };
}

/** What a person looks at: the account's devices, and what one of them measured and did. */
function pathsOf(world: World, { token }: RegisteredAccount): string[] {
  const owner = ({ accountToken = world.accountToken }: WitnessDevice) => accountToken;
  const device = world.devices.find((each) => owner(each) === token);
  return ['/v2/devices', `/v2/measurements/${device?.uuid}`, `/v2/events/${device?.uuid}`];
}

const empty = (): Answers => ({ ms: [], failed: 0, why: {} });

function time(
  answers: Answers,
  agent: Agent | undefined,
  url: string,
  { body, headers }: { body?: string; headers?: Record<string, string> } = {},
): Promise<void> {
  const since = performance.now();
  return new Promise((resolve) => {
    const done = (status: number | string) => {
      answers.ms.push(performance.now() - since);
      if (status !== 200) {
        answers.failed += 1;
        answers.why[status] = (answers.why[status] ?? 0) + 1;
      }
      resolve();
    };
    const asked = request(url, {
      method: body === undefined ? 'GET' : 'POST',
      agent: agent ?? false,
      headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
      signal: AbortSignal.timeout(giveUpMs),
    });
    asked.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.name));
    asked.on('response', (response) => {
      response.resume().on('error', () => undefined);
      response.on('close', () => done(response.complete ? (response.statusCode ?? 0) : 'cut'));
    });
    asked.end(body);
  });
}
