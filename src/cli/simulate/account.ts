import { randomBytes } from 'node:crypto';
import { LoginAnswer } from './answers.ts';
import { RestError, type Rest } from './rest.ts';

export type SimulatorLogin = { email: string; password: string };
/** The account of a run; `throwAway` when the run registered it for itself. */
export type OpenAccount = SimulatorLogin & { rest: Rest; throwAway: boolean };

/** Logs in with the given credentials, or registers an account that nobody else knows. */
export async function openAccount(
  rest: Rest,
  credentials: SimulatorLogin | null,
): Promise<OpenAccount> {
  if (credentials)
    return { ...credentials, rest: await login(rest, credentials), throwAway: false };
  const made = {
    email: `simulator-${randomBytes(6).toString('hex')}@example.org`,
    password: randomBytes(15).toString('base64url'),
  };
  const call = { method: 'POST', path: '/v2/accounts', answer: LoginAnswer, body: made } as const;
  const { value } = await rest.call(call).catch(explainClosed);
  return { ...made, rest: rest.as(value.accountAuthToken), throwAway: true };
}

async function login(rest: Rest, body: SimulatorLogin): Promise<Rest> {
  const path = '/v2/accounts/login';
  const { value } = await rest.call({ method: 'POST', path, answer: LoginAnswer, body });
  return rest.as(value.accountAuthToken);
}

function explainClosed(error: unknown): never {
  if (error instanceof RestError && error.status === 403) {
    const hint = 'Ask its administrator for an account and name it with --account.';
    throw new RestError(`This service registers no accounts by itself. ${hint}`, 403, error);
  }
  throw error;
}
