import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { help, parseOptions } from '../../../src/cli/simulate/options.ts';
import { createScreen, readPassword, UsageError } from '../../../src/cli/command-line.ts';

describe('the command line', () => {
  it('has the defaults that the help names', () => {
    const options = parseOptions([]);
    expect(options).toMatchObject({ devices: 100, seconds: 30, rate: 1, keep: false });
    expect(help).toContain(`(default ${options.url})`);
    for (const name of Object.keys(options)) expect(help).toContain(`--${name}`);
    expect(help).toContain('--account EMAIL');
  });

  it('accepts an address with or without a trailing slash', () => {
    expect(parseOptions(['--url', 'http://127.0.0.1:1/']).url).toBe('http://127.0.0.1:1');
  });

  it('reports all errors at once', () => {
    const args = ['--devices', '0', '--seconds', 'soon', '--rate', '1e9', '--url', 'ftp://x'];
    expect(() => parseOptions(args)).toThrow(UsageError);
    expect(() => parseOptions(args)).toThrow(/--url.*\n--devices.*\n--seconds.*\n--rate/);
  });

  it('refuses unknown options', () => {
    expect(() => parseOptions(['--device', '3'])).toThrow(UsageError);
  });
});

describe('the password', () => {
  it('is the first line of standard input', async () => {
    const output = new PassThrough();
    const password = await readPassword('a@example.org', Readable.from(['secret\nx\n']), output);
    expect(password).toBe('secret');
    expect(output.read()).toBeNull();
  });

  it('is missing if there is no line', async () => {
    await expect(readPassword('a@example.org', Readable.from([]), process.stdout)).rejects.toThrow(
      'standard input is empty',
    );
  });
});

describe('the screen', () => {
  function written(isTTY: boolean, use: (screen: ReturnType<typeof createScreen>) => void) {
    let text = '';
    use(createScreen({ isTTY, columns: 60, write: (part) => (text += part) }));
    return text;
  }

  it('writes plain lines without a terminal', () => {
    const text = written(false, (screen) => {
      for (let done = 1; done <= 8; done += 1) screen.bar('Registering', done, 8);
      screen.live('1 s');
      screen.say('end');
    });
    expect(text).toBe(
      'Registering: 2 of 8\nRegistering: 4 of 8\nRegistering: 6 of 8\nRegistering: 8 of 8\n1 s\nend\n',
    );
  });

  it('changes one line on a terminal, cut to its width', () => {
    const text = written(true, (screen) => {
      screen.bar('Registering', 1, 2);
      screen.bar('Registering', 2, 2);
      screen.live('x'.repeat(100));
      screen.say('end');
    });
    const lines = text.split('\n');
    expect(lines[0]).toContain(`[${'='.repeat(15)}${' '.repeat(15)}] 1 of 2`);
    expect(lines[0]).toContain(`[${'='.repeat(30)}] 2 of 2`);
    expect(lines[1]).toBe(`\r${'x'.repeat(59)}\u001b[K\r\u001b[Kend`);
  });
});
