import { z } from 'zod';

/** What a build says about itself, in `manifest.json`: the page, and the files that it loads. */
export const PageManifest = z.object({
  /** Names of the files beside it; each also exists with `.br` and `.gz` appended. */
  files: z.array(z.object({ name: z.string().regex(/^[\w.-]+$/), type: z.string() })),
});
export type PageManifest = z.infer<typeof PageManifest>;

export const manifestName = 'manifest.json';
export const pageName = 'index.html';
