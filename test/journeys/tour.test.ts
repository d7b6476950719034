import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasMosquitto } from '../support/mosquitto.ts';
import { findProgram } from '../support/program.ts';
import { readProjectFile, readShownSteps } from '../docs/readme.ts';
import { runProgram } from './process.ts';
import { startRunningService, type RunningService } from './running-service.ts';

/**
 * Removes what differs from run to run (identifiers, tokens, times, this run's port and account), and the carriage
 * returns of CSV (RFC 4180), which a page cannot show.
 */
function withoutParticulars(output: string): string {
  return output
    .replaceAll('\r', '')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/(AuthToken":")[^"]*/g, '$1<token>')
    .replaceAll(/"(eventId|requestId)":"[^"]*"/g, '"$1":"<id>"')
    .replaceAll(/\b1\d{12}\b/g, '<ts>')
    .replaceAll(/"host":"[^"]*","port":\d+/g, '"host":"<host>","port":<port>')
    .replaceAll(/tour-\d+@/g, 'tour-<n>@')
    .trim();
}

const canTour = hasMosquitto && findProgram('curl') !== null;

/** The paths of the specification's section 4. */
const specified = [
  '/v1/auth/login',
  '/v1/auth/refresh',
  '/v2/accounts',
  '/v2/accounts/login',
  '/v2/accounts/events',
  '/v2/devices',
  '/v2/devices/{deviceAuthUuid}',
  '/v2/devices/{deviceAuthUuid}/configuration',
  '/v2/devices/profile',
  '/v2/events/{deviceAuthUuid}',
  '/v2/purposes',
  '/v2/purposes/{purposeUuid}',
  '/v2/status',
];

describe('the documentation and the running service', () => {
  let service: RunningService;
  beforeAll(async () => void (service = await startRunningService()));
  afterAll(() => service?.close());

  it('agree on the routes beyond the specification', async () => {
    const answer = await fetch(`${service.url}/v2/openapi.json`);
    const paths = Object.keys(((await answer.json()) as { paths: object }).paths);
    const text = readProjectFile('docs/specification.md');
    const named = [...text.matchAll(/`(?:GET|PUT|POST|DELETE) (\/[^`?]*)`/g)].map(
      ([, path]) => path,
    );
    expect(specified.filter((path) => !paths.includes(path))).toEqual([]);
    expect(paths.filter((path) => !specified.includes(path) && !named.includes(path))).toEqual([]);
  });

  it.skipIf(!canTour)('agree on what the five-minute tour prints', async () => {
    const tour = runProgram('sh', ['docs/tour.sh'], { env: { URL: service.url } });
    const status = await tour.ended();
    expect(tour.stderr()).toBe('');
    const shown = readShownSteps().flatMap(({ output }) => output.split('\n'));
    expect(withoutParticulars(tour.stdout()).split('\n')).toEqual(
      shown.map(withoutParticulars).filter((line) => line !== ''),
    );
    expect(status).toBe(0);
  });
});
