import { expect, it } from 'vitest';
import { createLog } from '../../src/log.ts';

it('blacks out passwords and tokens wherever they stand', () => {
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    isTerminal: false,
    destination: { write: (line) => void lines.push(line) },
  });
  log.info({
    password: 'hunter1',
    body: { email: 'a@b.example', refreshToken: 'hunter2' },
    request: { headers: { authorization: 'hunter3', cookie: 'hunter4' } },
  });
  expect(lines.join()).not.toContain('hunter');
  expect(lines.join()).toContain('a@b.example');
});
