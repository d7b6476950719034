import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Purpose } from '../../../src/contract/purpose.ts';
import { listWarnings } from '../../../src/engine/warnings.ts';

const directory = new URL('../../../examples/', import.meta.url);
const files = readdirSync(directory).filter((file) => file.endsWith('.json'));

describe.each(files)('examples/%s', (file) => {
  it('is a purpose without warnings', () => {
    const purpose = Purpose.parse(JSON.parse(readFileSync(new URL(file, directory), 'utf8')));
    expect(listWarnings([purpose])).toEqual([]);
  });
});
