import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take five seconds or more, the longest first: one that begins late is waited for at the
 * end. Vitest knows only their sizes where it has not run before, as in CI.
 */
const longest: string[] = [];

const rank = (file: string) => {
  const index = longest.indexOf(file);
  return index === -1 ? longest.length : index;
};

/** The long files of each project first, the others as Vitest sorts them. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rankOf = ({ moduleId }: TestSpecification) =>
      rank(relative(this.ctx.config.root, moduleId));
    // Stable: what has the same rank stays in Vitest's order, project by project.
    const projects = Map.groupBy(sorted, ({ project }) => project.name);
    return [...projects.values()].flatMap((of) => of.toSorted((a, b) => rankOf(a) - rankOf(b)));
  }
}
