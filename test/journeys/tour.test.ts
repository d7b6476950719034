import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasMosquitto } from '../harness/mosquitto.ts';
import { readShownSteps } from '../main/readme.ts';
import { runProgram } from './process.ts';
import { startRunningService, type RunningService } from './running-service.ts';

/** What differs from run to run: identifiers, tokens, times, this run's port and its account. */
function withoutParticulars(output: string): string {
  return output
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/(AuthToken":")[^"]*/g, '$1<token>')
    .replaceAll(/"(eventId|requestId)":"[^"]*"/g, '"$1":"<id>"')
    .replaceAll(/\b1\d{12}\b/g, '<ts>')
    .replaceAll(/"host":"[^"]*","port":\d+/g, '"host":"<host>","port":<port>')
    .replaceAll(/tour-\d+@/g, 'tour-<n>@')
    .trim();
}

describe.skipIf(!hasMosquitto)('the five-minute tour', () => {
  let service: RunningService;
  beforeAll(async () => void (service = await startRunningService()));
  afterAll(() => service?.close());

  it('runs to its end and prints what the README shows', async () => {
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
