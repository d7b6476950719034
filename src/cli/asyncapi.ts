import { writeFile } from 'node:fs/promises';
import { dump } from 'js-yaml';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';

// Writes asyncapi.yaml, the reference for firmware authors: `npm run asyncapi`.

const file = new URL('../../asyncapi.yaml', import.meta.url);
await writeFile(file, dump(asyncApiDocument(), { noRefs: true, lineWidth: 100 }));
