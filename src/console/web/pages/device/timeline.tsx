import type { ComponentChildren } from 'preact';
import { formatFullTime, formatTime } from '../../text/format.ts';
import { Pager } from '../fleet/pager.tsx';

type TimelineProps = { next: string | null; children: ComponentChildren };

/** What happened, newest first, a page of it. */
export function Timeline({ next, children }: TimelineProps) {
  return (
    <>
      <ol class="events">{children}</ol>
      <Pager next={next} />
    </>
  );
}

type MomentProps = { ts: number; title: string; children: ComponentChildren };

/** One of them, with when it was. */
export function Moment({ ts, title, children }: MomentProps) {
  return (
    <li>
      <time class="muted" title={formatFullTime(ts)}>
        {formatTime(ts)}
      </time>
      <div>
        <p class="event-title">{title}</p>
        {children}
      </div>
    </li>
  );
}
