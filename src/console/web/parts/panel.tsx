import type { ComponentChildren } from 'preact';
import { t } from '../text/t.ts';
import type { Query } from '../api/cache.ts';
import { Icon, type IconName } from './icon.tsx';
import { Problem } from './problem.tsx';

/** What is shown of a question: its last answer, an error above it, or a skeleton after 200 ms. */
export function Answered<T>({
  query,
  lines = 3,
  children,
}: {
  query: Query<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error, reload } = query;
  return (
    <>
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <Skeleton lines={lines} />}
    </>
  );
}

export function Skeleton({ lines }: { lines: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">{t('common.loading')}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton-line" />
      ))}
    </div>
  );
}

/** Says why there is nothing, and what to do. */
export function Empty({
  icon,
  title,
  hint,
  children,
}: {
  icon: IconName;
  title: string;
  hint?: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <p class="empty-title">{title}</p>
      {hint !== undefined && <p class="empty-hint">{hint}</p>}
      {children}
    </div>
  );
}
