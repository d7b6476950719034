import { z } from 'zod';

/** What a build lists of itself, in `manifest.json`: the page, and what it loads. */
export const PageManifest = z.object({
  /** Names of the files beside it; each also with `.br` and `.gz` behind it. */
  files: z.array(z.object({ name: z.string().regex(/^[\w.-]+$/), type: z.string() })),
});
export type PageManifest = z.infer<typeof PageManifest>;

export const manifestName = 'manifest.json';
export const pageName = 'index.html';
